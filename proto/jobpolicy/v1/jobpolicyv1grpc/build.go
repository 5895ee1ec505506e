package jobpolicyv1grpc

import (
	"strings"

	"google.golang.org/grpc/metadata"
)

// The headers of each answer that say which engine gave it.
const (
	VersionHeader     = "jobpolicy-engine-version"
	RulesDigestHeader = "jobpolicy-rules-digest"
)

// A Build says which engine gave an answer. A field is empty if the engine is too old
// to say.
type Build struct {
	// Version is the engine's version.
	Version string
	// RulesDigest is a digest of the engine's rules.
	RulesDigest string
}

// Header returns the headers of an answer of this build.
func (b Build) Header() metadata.MD {
	return metadata.Pairs(VersionHeader, b.Version, RulesDigestHeader, b.RulesDigest)
}

// BuildOf reads the headers of an answer, which the call option grpc.Header gets.
func BuildOf(header metadata.MD) Build {
	return Build{
		Version:     strings.Join(header.Get(VersionHeader), ", "),
		RulesDigest: strings.Join(header.Get(RulesDigestHeader), ", "),
	}
}

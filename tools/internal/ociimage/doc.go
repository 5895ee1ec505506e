// Package ociimage makes the container images of the services, without a container
// engine: it compiles a program for each platform, puts it on a layer of its own,
// and writes an OCI image layout and an archive of it.
//
// The same source, at the same commit, by the same Go version gives the same
// digests, in whatever folder and on whatever day.
//
// An image holds the program, the public certificate authorities (to verify a trace
// collector or an API server), a user that is not root, and in /licenses the
// license texts of all modules inside (package licenses). The time zones of CronJobs are
// part of the programs. Beside the images, their index holds
// a bill of materials for each, which refers to its image by digest: registries that
// know referrers show it as such.
//
// Weighed against ko v0.19 as a library: it brings 165 modules, takes the base image from
// a registry by default, and attaches a bill of materials as cosign does, not as an OCI
// referrer.
package ociimage

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jobpolicy.dev/tools/internal/licenses"
)

// Source is what images are made from.
type Source struct {
	// Dir is the top folder of the repository.
	Dir string
	// Version is what the programs call themselves: v1.2.3, or empty for a build
	// that is no release.
	Version string
	// Revision is the commit, and Time the time that everything in the image has.
	Revision string
	Time     time.Time
	// Env is added to the environment of the go command.
	Env []string
}

// unreleased is the version of a build that is no release, as the Helm chart names
// it: what is installed from a checkout takes the images made of it.
const unreleased = "v0.0.0-dev"

// version is the version as labels and bills of materials have it.
func (s Source) version() string {
	if s.Version != "" {
		return s.Version
	}
	return unreleased
}

// Program is one of the services.
type Program struct {
	// Name is the name of the image, of its only program and of the folder in
	// services/cmd.
	Name        string
	Title       string
	Description string
}

// Programs lists the services.
func Programs() []Program {
	return []Program{
		{
			Name:        "jobpolicy-engine",
			Title:       "jobpolicy policy engine",
			Description: "Decides what becomes of Kubernetes Jobs and CronJobs: a stateless gRPC service.",
		},
		{
			Name:        "jobpolicy-executor",
			Title:       "jobpolicy executor",
			Description: "Runs Kubernetes Jobs and CronJobs as the policy engine decides.",
		},
	}
}

// The facts that every image states.
const (
	homepage = "https://jobpolicy.dev"
	license  = "Apache-2.0"
	ours     = licenses.Ours
)

// user owns the process in the container: nonroot, by number, so that Kubernetes
// can tell that it is not root.
const user = "65532"

// DefaultPlatforms are the platforms that images are made for.
func DefaultPlatforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// ParsePlatforms reads a list such as linux/amd64,linux/arm64; empty: the default.
func ParsePlatforms(list string) ([]v1.Platform, error) {
	if list == "" {
		return DefaultPlatforms(), nil
	}
	var platforms []v1.Platform
	for word := range strings.SplitSeq(list, ",") {
		p, err := v1.ParsePlatform(word)
		if err != nil || p.OS == "" || p.Architecture == "" {
			return nil, fmt.Errorf("platforms must be a list such as linux/amd64,linux/arm64, has %q", word)
		}
		platforms = append(platforms, *p)
	}
	return platforms, nil
}

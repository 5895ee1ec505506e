// Package ociimage makes the container images of the services, without a container
// engine: it compiles a program for each platform, puts it on a layer of its own,
// and writes an OCI image layout and an archive of it.
//
// The same source, at the same commit, by the same Go version gives the same
// digests, in whatever folder and on whatever day.
//
// An image holds the program, the authorities of the web (for a trace collector or
// an API server that one of them vouches for), and a user that is not root. The time
// zones of CronJobs are part of the programs. Beside the images, their index holds
// a bill of materials for each, which refers to its image by digest: registries that
// know referrers show it as such.
package ociimage

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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

// version is the version as labels and bills of materials have it.
func (s Source) version() string {
	if s.Version != "" {
		return s.Version
	}
	return "devel"
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
	ours     = "jobpolicy.dev/"
)

// user owns the process in the container: nonroot, by number, so that Kubernetes
// can tell that it is not root.
const user = "65532"

// DefaultPlatforms are the platforms that images are made for.
func DefaultPlatforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// Package buildinfo says which build of the program is running.
//
// Weighed against component-base/version and prometheus/common/version, which are less
// exact for a program that go install has built.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version and commit are set where images and releases are built:
//
//	go build -ldflags "-X jobpolicy.dev/services/internal/buildinfo.version=v1.2.3 -X …buildinfo.commit=0123…" …
var version, commit string

// commitLength is how much of a commit hash identifies it for people.
const commitLength = 12

// Version is the released version. For a program that go install fetched, it is the
// version of its module. For an unreleased build it is "devel", followed by the commit
// if that is known.
func Version() string { return running().version() }

// Summary is one line about the build: version, commit, Go version and platform.
func Summary() string { return running().summary() }

// build is what is known of a build. Fields of which nothing is known are empty.
type build struct {
	released string // by the linker
	module   string // version of the main module
	commit   string
	modified bool
}

// running is the build that is running.
func running() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return newBuild(version, commit, info)
}

func newBuild(version, commit string, info *debug.BuildInfo) build {
	b := build{released: version, commit: commit}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && b.commit == "":
			b.commit = s.Value
		case s.Key == "vcs.modified" && commit == "":
			b.modified = s.Value == "true"
		}
	}
	// In a checkout the Go tool makes up a version from nearby tags.
	if b.commit == "" && info.Main.Version != "(devel)" {
		b.module = info.Main.Version
	}
	return b
}

func (b build) version() string {
	switch {
	case b.released != "":
		return b.released
	case b.module != "":
		return b.module
	case b.commit == "":
		return "devel"
	}
	name := "devel+" + b.commit[:min(len(b.commit), commitLength)]
	if b.modified || dirty(b.commit) {
		name += ".dirty"
	}
	return name
}

// dirty reports whether the commit given to the linker says that files differed.
func dirty(commit string) bool { return strings.HasSuffix(commit, "-dirty") }

func (b build) summary() string {
	known := b.commit
	if known == "" {
		known = "unknown"
	}
	if b.modified {
		known += "-dirty"
	}
	return fmt.Sprintf("%s (commit %s, %s, %s/%s)", b.version(), known, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

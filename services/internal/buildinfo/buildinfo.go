// Package buildinfo says which build of the program is running.
package buildinfo

import "runtime/debug"

// version is set when a release is built:
//
//	go build -ldflags "-X jobpolicy.dev/services/internal/buildinfo.version=v1.2.3" …
var version string

// revisionLength is how much of a commit hash identifies it for people.
const revisionLength = 12

// Version is the released version; of an unreleased build, "devel", followed by
// the commit it was built from where the Go tool recorded it.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return develVersion(info.Settings)
}

func develVersion(settings []debug.BuildSetting) string {
	var revision, dirty string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = "+" + s.Value[:min(len(s.Value), revisionLength)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	return "devel" + revision + dirty
}

// Package gomodules makes the Go modules of the repository fit to be required from
// outside.
//
// In the repository they require each other at v0.0.0, and a replace line leads to the
// folder beside: what one commit holds belongs together, and each module also builds
// by itself. A consumer's go command ignores those lines, and go install refuses a
// module that has any. So a release is a commit of its own, one step beside the main
// branch, in which the published modules require each other at the version that is
// released and replace nothing; the tags name that commit.
//
// Weighed against OpenTelemetry's multimod, which leaves the replace lines.
package gomodules

// Published are the folders of the modules that others may require, each after those
// that it requires.
var Published = []string{"proto", "engine", "executor", "services"}

// prefix begins the path of each of our modules.
const prefix = "jobpolicy.dev/"

// Path is the import path of the module in a folder of the repository.
func Path(dir string) string { return prefix + dir }

// Tag is the git tag by which the go command finds a version of that module.
func Tag(dir, version string) string { return dir + "/" + version }

// Package lint pins the version of golangci-lint. It is a module of its own, so that the many dependencies of
// golangci-lint do not change the versions of the other tools' dependencies. The settings are in .golangci.yml at the top
// of the repository; the test here breaks each kind of rule and expects the complaint.
package lint

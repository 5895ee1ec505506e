// Package lint pins golangci-lint, in a module of its own because it needs other versions of libraries than the tools
// beside it. Its settings are .golangci.yml at the top of the repository; the test here proves that they find what they
// forbid.
package lint

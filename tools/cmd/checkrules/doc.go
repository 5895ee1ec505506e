// Command checkrules checks the architecture of the workspace. It reads the modules listed in go.work and reports
// every place that breaks a rule of the table in rules.go.
//
//	checkrules [-C dir] [-align] [imports] [purity] [versions] [docs] [owners]
//
// imports: what go.mod of each module may require, and what the engine may link in the end. What source files may import
// is checked by golangci-lint (.golangci.yml).
// purity: the engine has no goroutine, no memory between calls, and no map order that leaks (I7). golangci-lint checks
// that it has no clock, no randomness and no I/O.
// versions: one version of each dependency, and one go directive, in every module.
// docs: the versions that Markdown files name are those of go.mod, the Helm chart and the changelog.
// owners: no code compares the API version of an owner or another object.
//
// With -align it first mends what versions would report, by go get and go mod tidy in the modules that lag.
//
// Without a name all are checked. A violation is one line, "file:line: rule: what to do instead", with the path
// relative to the workspace. Exit status: 0 when every rule holds, 1 when one is broken, 2 when the check itself
// could not be made, for example because the engine does not compile.
//
// Weighed against ruleguard, which does not see that a call stands in another one (purity), and Temporal's
// workflowcheck, which does not see writes to package variables.
package main

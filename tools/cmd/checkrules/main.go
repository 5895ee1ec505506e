package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// checks are the groups of rules by the name they have on the command line, in the order they are run.
var checks = []struct {
	name  string
	check func(*workspace) ([]violation, error)
}{
	{"imports", func(ws *workspace) ([]violation, error) { return checkRequirements(ws, moduleRules) }},
	{"imports", func(ws *workspace) ([]violation, error) { return checkLinked(ws, moduleRules) }},
	{"purity", checkPurity},
	{"versions", func(ws *workspace) ([]violation, error) { return checkVersions(ws), nil }},
	{"docs", checkDocs},
	{"owners", checkOwners},
}

// run is the command without its process: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("checkrules", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("C", ".", "the workspace: the `directory` that holds go.work")
	alignFirst := flags.Bool("align", false, "first bring every module to the newest version that any of them takes (go get, go mod tidy)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *alignFirst {
		if err := align(*dir, stderr); err != nil {
			fmt.Fprintln(stderr, "checkrules: align:", err)
			return 2
		}
	}
	found, err := check(*dir, flags.Args())
	for _, v := range found {
		fmt.Fprintln(stdout, v)
	}
	if err != nil {
		fmt.Fprintln(stderr, "checkrules:", err)
		return 2
	}
	if len(found) > 0 {
		return 1
	}
	return 0
}

// check runs the named groups, or all of them, on the workspace in dir. A group that cannot be checked does not hide
// what the others find.
func check(dir string, names []string) ([]violation, error) {
	wanted, err := wantedNames(names)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	ws, err := readWorkspace(root)
	if err != nil {
		return nil, err
	}
	var found []violation
	var failed []error
	for _, c := range checks {
		if !wanted[c.name] {
			continue
		}
		more, err := c.check(ws)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
		}
		found = append(found, more...)
	}
	return sortViolations(found), errors.Join(failed...)
}

// wantedNames is the set of groups to check; no name means all.
func wantedNames(names []string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, c := range checks {
		known[c.name] = true
	}
	if len(names) == 0 {
		return known, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("no group of rules is called %q: imports, purity, versions, docs, owners", name)
		}
		wanted[name] = true
	}
	return wanted, nil
}

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// writeWorkspace lays out testdata/workspace.txtar in a new directory, with the changed files added or in place of its
// own.
func writeWorkspace(t *testing.T, changes ...txtar.File) string {
	t.Helper()
	base, err := txtar.ParseFile("testdata/workspace.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range append(base.Files, changes...) {
		writeFile(t, filepath.Join(root, filepath.FromSlash(f.Name)), string(f.Data))
	}
	return root
}

// checkrules runs the command on a workspace and returns its exit status and what it printed.
func checkrules(root string, groups ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(append([]string{"-C", root}, groups...), &out, &errs)
	return status, out.String(), errs.String()
}

func TestWorkspaceThatKeepsTheRulesPasses(t *testing.T) {
	status, stdout, stderr := checkrules(writeWorkspace(t))
	if status != 0 || stdout != "" || stderr != "" {
		t.Errorf("status %d\nstdout: %s\nstderr: %s\nwant status 0 and no output", status, stdout, stderr)
	}
}

// Each file in testdata/violations is named for what goes wrong. It holds the command, the files that differ from
// the good workspace, and, under want, what the command must print.
func TestViolations(t *testing.T) {
	names, err := filepath.Glob("testdata/violations/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases found: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			tc, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			last := len(tc.Files) - 1
			changes, want := tc.Files[:last], tc.Files[last]
			if want.Name != "want" {
				t.Fatalf("the last file is %q, want it to be called want", want.Name)
			}
			args := strings.Fields(string(tc.Comment))
			status, stdout, stderr := checkrules(writeWorkspace(t, changes...), args[1:]...)
			if status != 1 || stderr != "" {
				t.Errorf("status %d, stderr %q, want status 1 and nothing on stderr", status, stderr)
			}
			if diff := cmp.Diff(string(want.Data), stdout); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

var doesNotCompile = txtar.File{Name: "engine/a.go", Data: []byte("package engine\n\nvar x int = \"text\"\n")}

func TestChecksThatCannotBeMade(t *testing.T) {
	cases := map[string]struct {
		changes    []txtar.File
		groups     []string
		wantStderr string
	}{
		"the engine does not compile": {
			changes:    []txtar.File{doesNotCompile},
			groups:     []string{"purity"},
			wantStderr: "cannot use \"text\"",
		},
		"a module is missing": {
			changes:    []txtar.File{{Name: "go.work", Data: []byte("go 1.26.0\n\nuse ./nowhere\n")}},
			groups:     []string{"versions"},
			wantStderr: "nowhere",
		},
		"an unknown group is asked for": {
			groups:     []string{"everything"},
			wantStderr: "no group of rules is called \"everything\": imports, purity, versions",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := checkrules(writeWorkspace(t, tc.changes...), tc.groups...)
			if status != 2 || stdout != "" {
				t.Errorf("status %d, stdout %q, want status 2 and nothing on stdout", status, stdout)
			}
			if !strings.Contains(stderr, tc.wantStderr) {
				t.Errorf("stderr %q does not say %q", stderr, tc.wantStderr)
			}
		})
	}
}

// A group that cannot be checked must not hide what another one finds.
func TestFailedCheckStillReportsTheOthers(t *testing.T) {
	root := writeWorkspace(t, doesNotCompile,
		txtar.File{Name: "services/go.mod", Data: []byte("module jobpolicy.dev/services\n\ngo 1.25.0\n")})
	status, stdout, _ := checkrules(root)
	if status != 2 || !strings.Contains(stdout, "services/go.mod:1: one-version:") {
		t.Errorf("status %d, stdout %q, want status 2 and the violation in services/go.mod", status, stdout)
	}
}

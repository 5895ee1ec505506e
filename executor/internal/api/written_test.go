package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every write of this package is recorded by Client.written, with its kind: in the function that makes
// it, or in all functions that call that one.
func TestEveryWriteIsRecorded(t *testing.T) {
	calls := map[string]map[string]bool{} // What each function of the package calls.
	var writing []string
	eachFunction(t, os.DirFS("."), func(name string, f *ast.FuncDecl) {
		calls[f.Name.Name] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				calls[f.Name.Name][called(call)] = true
				if isWrite(call) {
					writing = append(writing, f.Name.Name)
				}
			}
			return true
		})
	})
	var recorded func(name string) bool
	recorded = func(name string) bool {
		for _, recorder := range []string{"written", "ended", "versionWritten", "cronJobEnded"} {
			if calls[name][recorder] {
				return true
			}
		}
		callers := slices.DeleteFunc(slices.Collect(maps.Keys(calls)), func(caller string) bool { return caller == name || !calls[caller][name] })
		return len(callers) > 0 && !slices.ContainsFunc(callers, func(caller string) bool { return !recorded(caller) })
	}
	if len(writing) < 10 {
		t.Errorf("writes are made by %v, want more: the test does not find them", writing)
	}
	for _, name := range writing {
		if !recorded(name) {
			t.Errorf("%s makes a write that nothing records", name)
		}
	}
}

// No other package of the executor writes, but those that write leases, events, and the status of
// JobPolicies: these are for no Job or CronJob that could be told of a refusal. It does not use package podjob.
func TestOnlyThisPackageWrites(t *testing.T) {
	eachFunction(t, os.DirFS(".."), func(name string, f *ast.FuncDecl) {
		if dir := filepath.Dir(name); dir == "api" || dir == "events" || dir == "leaderelection" || dir == "policy" || dir == "podjob" || strings.HasPrefix(dir, "internal") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isWrite(call) {
				t.Errorf("%s: %s makes a write", name, f.Name.Name)
			}
			return true
		})
	})
}

func eachFunction(t *testing.T, root fs.FS, f func(file string, f *ast.FuncDecl)) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok {
				f(name, function)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// isWrite reports whether a call is one of a clientset's methods that write: it has options.
func isWrite(call *ast.CallExpr) bool {
	if !slices.Contains([]string{"Create", "Update", "UpdateStatus", "Patch", "Delete", "DeleteCollection", "Apply", "ApplyStatus", "UpdateScale", "UpdateEphemeralContainers", "UpdateResize"}, called(call)) {
		return false
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		switch arg := arg.(type) {
		case *ast.CompositeLit:
			selector, ok := arg.Type.(*ast.SelectorExpr)
			return ok && strings.HasSuffix(selector.Sel.Name, "Options")
		case *ast.Ident:
			return arg.Name == "options"
		}
		return false
	})
}

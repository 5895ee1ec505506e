package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// report adds one diagnostic; rule becomes its category.
func report(pass *analysis.Pass, pos token.Pos, rule, format string, args ...any) {
	pass.Report(analysis.Diagnostic{Pos: pos, Category: rule, Message: fmt.Sprintf(format, args...)})
}

// concurrency reports the statements whose outcome depends on the scheduler.
func concurrency(pass *analysis.Pass, file *ast.File) {
	for n := range ast.Preorder(file) {
		switch n.(type) {
		case *ast.GoStmt:
			report(pass, n.Pos(), "concurrency", "go statement: call the function and use its result")
		case *ast.SelectStmt:
			report(pass, n.Pos(), "concurrency", "select statement: which case runs is random; decide from values")
		}
	}
}

// homeOf says where a package-level name or a method is declared: "time", "time.Time" for its methods, "" for what is
// built into the language. An object of another kind has no name here.
func homeOf(obj types.Object) (home, name string) {
	switch obj := obj.(type) {
	case *types.Builtin:
		return "", obj.Name()
	case *types.Func:
		if recv := obj.Signature().Recv(); recv != nil {
			return typeName(recv.Type()), obj.Name()
		}
		return obj.Pkg().Path(), obj.Name()
	case *types.Var:
		if packageLevel(obj) {
			return obj.Pkg().Path(), obj.Name()
		}
	}
	return "", ""
}

// typeName is the qualified name of a named type or of a pointer to one; empty for others.
func typeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

// qualified joins a home and a name as a reader of the code knows them: time.Now, time.Time.Local, println.
func qualified(home, name string) string {
	if home == "" {
		return name
	}
	return home[strings.LastIndex(home, "/")+1:] + "." + name
}

// packageLevel reports whether the variable is declared outside functions.
func packageLevel(v *types.Var) bool {
	return v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// checkOwners reports every comparison with an API version in the modules' code, tests left out: group, kind and UID
// say what a reference means, and objects are the same in every version.
func checkOwners(ws *workspace) ([]violation, error) {
	var found []violation
	for _, m := range ws.modules {
		err := filepath.WalkDir(filepath.Join(ws.root, filepath.FromSlash(m.dir)), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rel, err := filepath.Rel(ws.root, path)
			if err != nil || slices.Contains(readsVersions, filepath.ToSlash(filepath.Dir(rel))) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for n := range ast.Preorder(file) {
				if compares(n, "APIVersion") {
					text := "compares an API version: compare group, kind and UID (executor/wire.ControllerOf)"
					found = append(found, violation{filepath.ToSlash(rel), files.Position(n.Pos()).Line, "owners", text})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// compares reports whether a node compares a field of this name with something.
func compares(n ast.Node, field string) bool {
	is := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == field
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) && (is(n.X) || is(n.Y))
	case *ast.SwitchStmt:
		return is(n.Tag)
	}
	return false
}

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

const stateAdvice = "a decision leaves nothing behind; keep the value in a local variable or return it"

// packageState reports, inside functions, every way to change a package-level variable that can be seen without
// following pointers: assignment to it or to a part of it, ++ and --, range into it, delete, clear and copy, its
// address, and a call of a method that takes its address.
func packageState(pass *analysis.Pass, file *ast.File) {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		for n := range ast.Preorder(fn.Body) {
			for _, target := range written(pass.TypesInfo, n) {
				if v := rootVariable(pass.TypesInfo, target); v != nil && packageLevel(v) {
					report(pass, target.Pos(), "package-state", "write to package variable %s: %s", v.Name(), stateAdvice)
				}
			}
		}
	}
}

// written lists the expressions that the node may change.
func written(info *types.Info, n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return nil
		}
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok != token.ASSIGN {
			return nil
		}
		return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
	case *ast.UnaryExpr:
		// The address of a part, &rules[i], is the common way to read a table without copying; it is left alone.
		if _, whole := ast.Unparen(n.X).(*ast.Ident); whole && n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		return writtenByCall(info, n)
	}
	return nil
}

// writtenByCall lists what a call may change: the first argument of the built-in functions that write, and the
// variable whose address a method takes.
func writtenByCall(info *types.Info, call *ast.CallExpr) []ast.Expr {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		b, ok := info.Uses[fun].(*types.Builtin)
		if ok && slices.Contains([]string{"clear", "copy", "delete"}, b.Name()) {
			return call.Args[:1]
		}
	case *ast.SelectorExpr:
		sel := info.Selections[fun]
		if sel != nil && sel.Kind() == types.MethodVal && takesAddress(sel) {
			return []ast.Expr{fun.X}
		}
	}
	return nil
}

// takesAddress reports whether the method has a pointer receiver and is called on something that is not a pointer.
func takesAddress(sel *types.Selection) bool {
	recv := sel.Obj().(*types.Func).Signature().Recv()
	return isPointer(recv.Type()) && !isPointer(sel.Recv()) && !sel.Indirect()
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// rootVariable is the variable at the left end of x.f[i].g, or nil when there is none, as in f().x.
func rootVariable(info *types.Info, e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if info.Selections[x] == nil { // a name of another package
				v, _ := info.Uses[x.Sel].(*types.Var)
				return v
			}
			e = x.X
		case *ast.Ident:
			v, _ := info.Uses[x].(*types.Var)
			return v
		default:
			return nil
		}
	}
}

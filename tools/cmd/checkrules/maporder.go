package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const orderAdvice = "the order is random: walk sorted keys (slices.Sorted(maps.Keys(m))) or a slice, or, where the " +
	"order cannot be seen, say why in a comment on this line: \"" + orderWaiver + "…\""

// orderlessWalks reports the walks over a map whose order may reach the answer: range statements and the calls of the
// table, unless the result is sorted at once or the line says why the order does not matter.
func orderlessWalks(pass *analysis.Pass, file *ast.File) {
	waived := waivedLines(pass, file)
	sorted := sortedArguments(pass.TypesInfo, file)
	flag := func(pos token.Pos, what string) {
		if line := pass.Fset.Position(pos).Line; !waived[line] {
			report(pass, pos, "map-order", "%s: %s", what, orderAdvice)
		}
	}
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(pass.TypesInfo.TypeOf(n.X)) {
				flag(n.Pos(), "range over a map")
			}
		case *ast.CallExpr:
			if name := orderlessCall(pass.TypesInfo, n); name != "" && !sorted[n] {
				flag(n.Pos(), name)
			}
		}
	}
}

// waivedLines is the set of lines that a waiver with a reason covers: its own, and the next one.
func waivedLines(pass *analysis.Pass, file *ast.File) map[int]bool {
	waived := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, orderWaiver)
			if !ok || strings.TrimSpace(reason) == "" {
				continue
			}
			line := pass.Fset.Position(c.Pos()).Line
			waived[line], waived[line+1] = true, true
		}
	}
	return waived
}

// sortedArguments is the set of calls whose result goes straight into a sorting call.
func sortedArguments(info *types.Info, file *ast.File) map[*ast.CallExpr]bool {
	sorted := map[*ast.CallExpr]bool{}
	for n := range ast.Preorder(file) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		home, name := homeOf(typeutil.Callee(info, call))
		if !slices.Contains(sortingCalls, qualified(home, name)) {
			continue
		}
		if arg, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr); ok {
			sorted[arg] = true
		}
	}
	return sorted
}

// orderlessCall is the name of the called function when it is in the table; empty otherwise.
func orderlessCall(info *types.Info, call *ast.CallExpr) string {
	home, name := homeOf(typeutil.Callee(info, call))
	for _, c := range orderlessCalls {
		if c.in == home && slices.Contains(c.names, name) {
			return qualified(home, name)
		}
	}
	return ""
}

// isMap reports whether the type is a map, or a type parameter that only maps satisfy.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return coreIsMap(p)
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func coreIsMap(p *types.TypeParam) bool {
	iface := p.Constraint().Underlying().(*types.Interface)
	for i := range iface.NumEmbeddeds() {
		u, ok := iface.EmbeddedType(i).(*types.Union)
		if !ok || u.Len() == 0 {
			continue
		}
		if _, ok := u.Term(0).Type().Underlying().(*types.Map); ok {
			return true
		}
	}
	return false
}

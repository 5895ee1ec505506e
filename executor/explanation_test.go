package executor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// printers are the functions that show an explanation to people: in a log, a trace or
// a page of /debug.
var printers = map[string]bool{
	"describe.go describeDecision":          true,
	"report.go remember":                    true,
	"decide.go decided":                     true,
	"missed.go due":                         true,
	"internal/cronjob/state.go decided":     true,
	"internal/cronjob/reconcile.go explain": true,
	"internal/ttl/reconcile.go delete":      true,
	"shadow/differences.go OfJob":           true,
	"shadow/differences.go OfCronJob":       true,
	"shadow/differences.go OfFinishedJob":   true,
	"internal/cronjob/tell.go groupWait":    true,
}

// What to do stands in a decision's other fields. An explanation is for people, and its
// words may change with every release of the engine: no code may act on them.
func TestTheExplanationIsOnlyShown(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for n := range ast.Preorder(fn.Body) {
				if s, ok := n.(*ast.SelectorExpr); !ok || s.Sel.Name != "GetExplanation" {
					continue
				}
				found++
				if place := path + " " + fn.Name.Name; !printers[place] {
					t.Errorf("%s reads the explanation of a decision: act on its other fields instead", place)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("nobody shows explanations, or this test looks in the wrong place")
	}
}

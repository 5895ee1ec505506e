package main

import (
	"path/filepath"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// purity is the analyzer behind invariant I7: the same request gives the same bytes back, because the engine can see
// only the request. It reads one package at a time. Which packages the engine may import and which functions it may
// call are rules of .golangci.yml. The category of a diagnostic is the name of its rule.
var purity = &analysis.Analyzer{
	Name: "purity",
	Doc:  "report goroutines, memory between calls and map order in a pure package",
	Run:  runPurity,
}

func runPurity(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		concurrency(pass, file)
		packageState(pass, file)
		orderlessWalks(pass, file)
	}
	return nil, nil
}

// loadForPurity is what the analyzer needs of a package: its syntax and its types.
const loadForPurity = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo |
	packages.NeedModule

// checkPurity runs the analyzer over the pure module's code.
func checkPurity(ws *workspace) ([]violation, error) {
	pkgs, err := loadModule(ws.root, pureModule, loadForPurity)
	if err != nil {
		return nil, err
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{purity}, pkgs, nil)
	if err != nil {
		return nil, err
	}
	var found []violation
	for _, act := range graph.Roots {
		if act.Err != nil {
			return nil, act.Err
		}
		for _, d := range act.Diagnostics {
			pos := act.Package.Fset.Position(d.Pos)
			rel, err := filepath.Rel(ws.root, pos.Filename)
			if err != nil {
				return nil, err
			}
			found = append(found, violation{filepath.ToSlash(rel), pos.Line, d.Category, d.Message})
		}
	}
	return found, nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// checkLinked follows the imports of each module that has a list of what it may link, down to the last package, and
// reports what is not on the list with the chain that leads there.
func checkLinked(ws *workspace, rules []moduleRule) ([]violation, error) {
	var found []violation
	for _, rule := range rules {
		i := slices.IndexFunc(ws.modules, func(m module) bool { return m.dir == rule.dir })
		if rule.linked == nil || i < 0 {
			continue
		}
		pkgs, err := loadModule(ws.root, rule.dir, packages.NeedName|packages.NeedImports|packages.NeedDeps)
		if err != nil {
			return nil, err
		}
		found = append(found, linkedAgainst(ws.modules[i], rule, chains(pkgs))...)
	}
	return found, nil
}

// linkedAgainst compares what is linked, each package with the chain of imports to it, with the module's row.
func linkedAgainst(m module, rule moduleRule, linked map[string][]string) []violation {
	var found []violation
	for pkg, chain := range linked {
		if standard(pkg) || strings.HasPrefix(pkg, ourPrefix) || withinAny(pkg, rule.linked) {
			continue
		}
		text := fmt.Sprintf("%s must not link %s, which it does through %s: cut the chain at its first arrow out of the module",
			m.dir, pkg, strings.Join(chain, " → "))
		found = append(found, violation{m.goMod(), 1, "linked", text})
	}
	return found
}

// chains finds every package that is reachable from the roots, with the shortest chain of imports to it, both ends
// included.
func chains(roots []*packages.Package) map[string][]string {
	reached := map[string][]string{}
	var next []*packages.Package
	for _, pkg := range roots {
		reached[pkg.PkgPath] = []string{pkg.PkgPath}
		next = append(next, pkg)
	}
	for len(next) > 0 {
		pkg := next[0]
		next = next[1:]
		for _, imported := range pkg.Imports {
			if _, seen := reached[imported.PkgPath]; seen {
				continue
			}
			reached[imported.PkgPath] = append(slices.Clone(reached[pkg.PkgPath]), imported.PkgPath)
			next = append(next, imported)
		}
	}
	return reached
}

// loadModule loads the packages of one module of the workspace, without their tests. A package that does not load
// cleanly is an error: a rule cannot be checked on half of the code.
func loadModule(root, dir string, mode packages.LoadMode) ([]*packages.Package, error) {
	conf := &packages.Config{
		Mode: mode,
		Dir:  filepath.Join(root, filepath.FromSlash(dir)),
		// This workspace, even when the command runs with GOWORK=off, as the tools module must.
		Env: append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work")),
	}
	pkgs, err := packages.Load(conf, "./...")
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", dir, err)
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("load %s: it has no packages", dir)
	}
	var broken []error
	packages.Visit(pkgs, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			broken = append(broken, e)
		}
	})
	if len(broken) > 0 {
		return nil, fmt.Errorf("load %s: %w", dir, errors.Join(broken...))
	}
	return pkgs, nil
}

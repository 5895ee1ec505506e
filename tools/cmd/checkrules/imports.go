package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checkImports holds every module to its row: the imports of each source file, and the requirements of its go.mod.
// What a module links in the end is checkLinked's concern.
func checkImports(ws *workspace, rules []moduleRule) ([]violation, error) {
	var found []violation
	for _, m := range ws.modules {
		i := slices.IndexFunc(rules, func(r moduleRule) bool { return r.dir == m.dir })
		if i < 0 {
			found = append(found, violation{m.goMod(), 1, "module-row", "the module has no row in the rule table: say what it may import"})
			continue
		}
		found = append(found, requirementsAgainst(m, rules[i])...)
		inSource, err := sourceAgainst(ws, m, rules[i])
		if err != nil {
			return nil, err
		}
		found = append(found, inSource...)
	}
	return found, nil
}

// requirementsAgainst compares the go.mod requirements, direct and indirect, with what the module must never name.
func requirementsAgainst(m module, rule moduleRule) []violation {
	var found []violation
	for _, req := range m.mod.Require {
		for _, no := range rule.never {
			if !within(req.Mod.Path, no.path) {
				continue
			}
			text := fmt.Sprintf("%s must not require %s: %s", m.dir, req.Mod.Path, no.instead)
			found = append(found, violation{m.goMod(), req.Syntax.Start.Line, "require", text})
		}
	}
	return found
}

// sourceAgainst compares the imports of all the module's files with its row.
func sourceAgainst(ws *workspace, m module, rule moduleRule) ([]violation, error) {
	imports, err := importsOf(ws.root, m.dir)
	if err != nil {
		return nil, err
	}
	var found []violation
	for _, imp := range imports {
		text := objection(ws, m, rule, imp)
		if text == "" {
			continue
		}
		found = append(found, violation{imp.file, imp.line, "import", text})
	}
	return found, nil
}

// objection says why the module must not have this import; empty when it may.
func objection(ws *workspace, m module, rule moduleRule, imp importLine) string {
	for _, no := range rule.never {
		if within(imp.pkg, no.path) {
			return fmt.Sprintf("%s must not import %s: %s", m.dir, imp.pkg, no.instead)
		}
	}
	if standard(imp.pkg) {
		return ""
	}
	owner, ours := ws.owner(imp.pkg)
	if ours {
		if owner.dir == m.dir || slices.Contains(rule.ours, owner.dir) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s: it may import %s of this workspace; turn the arrow round, or move the code",
			m.dir, imp.pkg, listOrNothing(rule.ours))
	}
	if rule.direct == nil || imp.test || withinAny(imp.pkg, rule.direct) {
		return ""
	}
	return fmt.Sprintf("%s must not import %s: besides the standard library it may use %s", m.dir, imp.pkg, listOrNothing(rule.direct))
}

func listOrNothing(items []string) string {
	if len(items) == 0 {
		return "nothing"
	}
	return strings.Join(items, ", ")
}

// importLine is one import of one source file.
type importLine struct {
	file string // relative to the workspace
	line int
	pkg  string
	test bool // the file is a test
}

// importsOf lists the imports of every Go file of the module in dir, whatever its build constraints. Nested modules,
// testdata, vendor and hidden directories are not part of it.
func importsOf(root, dir string) ([]importLine, error) {
	var lines []importLine
	base := filepath.Join(root, filepath.FromSlash(dir))
	err := filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != base && outside(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if path.Ext(d.Name()) != ".go" {
			return nil
		}
		more, err := importsOfFile(root, name)
		lines = append(lines, more...)
		return err
	})
	return lines, err
}

// outside reports whether the directory is no part of the module it lies in.
func outside(name, base string) bool {
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	return err == nil
}

func importsOfFile(root, name string) ([]importLine, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	var lines []importLine
	for _, spec := range f.Imports {
		pkg, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		lines = append(lines, importLine{
			file: filepath.ToSlash(rel),
			line: fset.Position(spec.Pos()).Line,
			pkg:  pkg,
			test: strings.HasSuffix(name, "_test.go"),
		})
	}
	return lines, nil
}

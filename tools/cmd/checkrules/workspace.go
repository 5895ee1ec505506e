package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// violation is one broken rule at one place.
type violation struct {
	file string // relative to the workspace, with slashes
	line int    // counted from 1
	rule string
	text string // what is wrong and what to do instead
}

func (v violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.file, v.line, v.rule, v.text)
}

// sortViolations orders by file, line, rule and text, and drops repetitions.
func sortViolations(vs []violation) []violation {
	slices.SortFunc(vs, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line),
			cmp.Compare(a.rule, b.rule), cmp.Compare(a.text, b.text))
	})
	return slices.Compact(vs)
}

// module is one module of the workspace: its directory relative to the root, with slashes, and its go.mod.
type module struct {
	dir string
	mod *modfile.File
}

// goMod is the module's go.mod, relative to the workspace.
func (m module) goMod() string { return path.Join(m.dir, "go.mod") }

// workspace is the set of modules that go.work lists, in its order, and the tools module beside them.
type workspace struct {
	root    string
	modules []module
	tools   module
}

// readWorkspace reads root/go.work and each go.mod it leads to. The tools module stands outside go.work, so that what
// the tools depend on does not reach the products; it is optional here.
func readWorkspace(root string) (*workspace, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, data, nil)
	if err != nil {
		return nil, err
	}
	ws := &workspace{root: root}
	for _, use := range work.Use {
		m, err := readModule(root, path.Clean(filepath.ToSlash(use.Path)))
		if err != nil {
			return nil, err
		}
		ws.modules = append(ws.modules, m)
	}
	ws.tools, err = readModule(root, "tools")
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return ws, nil
}

func readModule(root, dir string) (module, error) {
	name := filepath.Join(root, filepath.FromSlash(dir), "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return module{}, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return module{}, err
	}
	if mod.Module == nil {
		return module{}, fmt.Errorf("%s: no module line", name)
	}
	return module{dir: dir, mod: mod}, nil
}

// within reports whether the import path is prefix itself or lies below it.
func within(pkg, prefix string) bool {
	rest, ok := strings.CutPrefix(pkg, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// withinAny reports whether the import path lies within one of the prefixes.
func withinAny(pkg string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return within(pkg, p) })
}

// standard reports whether the import path belongs to the standard library: its first element has no dot.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

package main

import (
	"fmt"
	"slices"

	"golang.org/x/mod/modfile"
	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// checkVersions reports each dependency that two modules of the workspace take at different versions (after their
// replace lines), go directives that differ, and tools that write code for another version of a library.
func checkVersions(ws *workspace) []violation {
	found := goDirectives(ws.modules)
	for _, l := range lagsIn(ws) {
		text := fmt.Sprintf("%s is %s here and %s in %s: take one version everywhere (make align does)",
			l.dep, l.version, l.newest.version, l.newest.in.dir)
		found = append(found, violation{l.in.goMod(), l.line, "one-version", text})
	}
	return found
}

// requirement is a dependency at the version that one module takes.
type requirement struct {
	dep, version string
	in           module
	line         int
}

// requirementsOf lists the requirements of a module, direct and indirect, as its replace lines change them. A
// dependency that is replaced by a directory has no version and is left out.
func requirementsOf(m module) []requirement {
	if m.mod == nil {
		return nil
	}
	var reqs []requirement
	for _, r := range m.mod.Require {
		taken := taken(m.mod, r.Mod)
		if taken.Version == "" {
			continue
		}
		reqs = append(reqs, requirement{dep: taken.Path, version: taken.Version, in: m, line: r.Syntax.Start.Line})
	}
	return reqs
}

// taken is the module and version that the replace lines leave of a requirement; the version is empty when they lead
// to a directory.
func taken(mod *modfile.File, req gomod.Version) gomod.Version {
	for _, r := range mod.Replace {
		if r.Old.Path == req.Path && (r.Old.Version == "" || r.Old.Version == req.Version) {
			return r.New
		}
	}
	return req
}

// lag is a requirement that is behind the newest one of the same dependency in another module.
type lag struct {
	requirement
	newest requirement
}

// lagsIn compares the requirements of all modules, and of the tools where toolVersions asks for it.
func lagsIn(ws *workspace) []lag {
	var all []requirement
	for _, m := range ws.modules {
		all = append(all, requirementsOf(m)...)
	}
	for _, req := range requirementsOf(ws.tools) {
		if slices.Contains(toolVersions, req.dep) {
			all = append(all, req)
		}
	}
	newest := map[string]requirement{}
	for _, r := range all {
		if best, ok := newest[r.dep]; !ok || semver.Compare(r.version, best.version) > 0 {
			newest[r.dep] = r
		}
	}
	var lags []lag
	for _, r := range all {
		if best := newest[r.dep]; r.version != best.version {
			lags = append(lags, lag{r, best})
		}
	}
	return lags
}

// goDirectives reports the modules whose go directive differs from that of the first module.
func goDirectives(modules []module) []violation {
	var found []violation
	for _, m := range modules {
		first := modules[0]
		if goVersion(m.mod) == goVersion(first.mod) {
			continue
		}
		text := fmt.Sprintf("the go directive is %q here and %q in %s: use one", goVersion(m.mod), goVersion(first.mod), first.dir)
		found = append(found, violation{m.goMod(), 1, "one-version", text})
	}
	return found
}

func goVersion(mod *modfile.File) string {
	if mod.Go == nil {
		return ""
	}
	return mod.Go.Version
}

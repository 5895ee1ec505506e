package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// The places in documents that name a version.
var (
	modulePin     = regexp.MustCompile(`([a-z0-9.-]+\.[a-z]+(?:/[A-Za-z0-9._-]+)*)@(v\d[0-9A-Za-z.+-]*[0-9A-Za-z])`)
	goNeeded      = regexp.MustCompile(`\bGo (1\.\d+(?:\.\d+)?) or newer`)
	clusterNeeded = regexp.MustCompile(`Kubernetes v(1\.\d+) (?:or newer|to v)`)
	clusterTested = regexp.MustCompile(`(?:tested (?:is|on) |Kubernetes v1\.\d+ to )v(1\.\d+)`)
	chartNeeds    = regexp.MustCompile(`(?m)^kubeVersion: ">=(1\.\d+)\.0-0(?: <1\.\d+\.0-0)?"$`)
	released      = regexp.MustCompile(`(?m)^## (v\S+)`)
)

// facts are the versions that documents must agree with; an empty one is not known,
// and not checked.
type facts struct {
	modules       map[string]string // by module path, as some go.mod requires it
	goNeeded      string            // the newest go directive of any module
	clusterNeeded string            // as the chart says
	clusterTested string            // of the control plane that tests run on
}

// checkDocs compares every version that a Markdown file names with the go.mod files,
// the chart and the changelog, and looks for the files, headings and tests that it refers to.
// The changelog tells what was, and is left alone.
func checkDocs(ws *workspace) ([]violation, error) {
	known, err := readFacts(ws)
	if err != nil {
		return nil, err
	}
	refs, err := readReferences(ws.root)
	if err != nil {
		return nil, err
	}
	var found []violation
	err = filepath.WalkDir(ws.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ws.root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" || d.Name() == "CHANGELOG.md" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(ws.root, path)
		for i, line := range strings.Split(string(data), "\n") {
			for _, text := range append(known.objections(line), refs.dead(path, line)...) {
				found = append(found, violation{filepath.ToSlash(name), i + 1, "docs", text})
			}
		}
		return err
	})
	return found, err
}

// objections says what a line of a document gets wrong.
func (k facts) objections(line string) []string {
	var found []string
	for _, m := range modulePin.FindAllStringSubmatch(line, -1) {
		if want := k.version(m[1]); want != "" && m[2] != want {
			found = append(found, fmt.Sprintf("%s is %s here and %s in go.mod or CHANGELOG.md", m[1], m[2], want))
		}
	}
	for _, c := range []struct {
		form       *regexp.Regexp
		want, what string
	}{
		{goNeeded, k.goNeeded, "Go needed is %s here, and the newest go directive is %s"},
		{clusterNeeded, k.clusterNeeded, "Kubernetes needed is v%s here, and the chart needs v%s"},
		{clusterTested, k.clusterTested, "Kubernetes tested is v%s here, and the control plane of the tests is v%s"},
	} {
		for _, m := range c.form.FindAllStringSubmatch(line, -1) {
			if c.want != "" && m[1] != c.want {
				found = append(found, fmt.Sprintf(c.what, m[1], c.want))
			}
		}
	}
	return found
}

// version is that of the module which holds the package; empty if no go.mod names it.
func (k facts) version(pkg string) string {
	best := ""
	for path := range k.modules { // order does not matter: the longest path is one
		if within(pkg, path) && len(path) > len(best) {
			best = path
		}
	}
	return k.modules[best]
}

func readFacts(ws *workspace) (facts, error) {
	known := facts{modules: map[string]string{}}
	for _, m := range append(ws.modules, ws.tools) {
		if m.mod == nil {
			continue
		}
		known.learn(m.mod)
	}
	if chart, err := os.ReadFile(filepath.Join(ws.root, "deploy/chart/jobpolicy/Chart.yaml")); err == nil {
		if m := chartNeeds.FindSubmatch(chart); m != nil {
			known.clusterNeeded = string(m[1])
		}
	}
	news, err := os.ReadFile(filepath.Join(ws.root, "CHANGELOG.md"))
	if err != nil && !os.IsNotExist(err) {
		return facts{}, err
	}
	// Before the first release our modules can be had from a folder only, at v0.0.0.
	ours := "v0.0.0"
	if m := released.FindSubmatch(news); m != nil {
		ours = string(m[1])
	}
	for _, m := range ws.modules {
		known.modules[m.mod.Module.Mod.Path] = ours
	}
	return known, nil
}

// learn takes over what a go.mod requires.
func (k *facts) learn(mod *modfile.File) {
	if v := goVersion(mod); k.goNeeded == "" || semver.Compare("v"+v, "v"+k.goNeeded) > 0 {
		k.goNeeded = v
	}
	for _, r := range mod.Require {
		if version := taken(mod, r.Mod).Version; version != "" {
			k.modules[r.Mod.Path] = version
		}
		if r.Mod.Path == upstreamSource.path {
			k.clusterTested = strings.TrimPrefix(semver.MajorMinor(r.Mod.Version), "v")
		}
	}
}

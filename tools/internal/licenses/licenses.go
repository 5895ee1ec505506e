// Package licenses finds the license texts of the modules that a program links. Their
// licenses ask whoever passes the program on to pass the texts on, too.
package licenses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Text is a license, a notice or a grant of patents. Name begins with the module that it is
// of: example.com/module@v1.2.3/LICENSE.
type Text struct {
	Name string
	Data []byte
}

// Ours begins the paths of our own modules. All of them are under the license of the
// repository.
const Ours = "jobpolicy.dev/"

var (
	license = regexp.MustCompile(`(?i)^(un)?licen[cs]es?([-._].*)?$|^copying([-._].*)?$`)
	notice  = regexp.MustCompile(`(?i)^(notice|patents)s?([-._].*)?$`)
)

// Of returns the texts of what a package links, by name. root is the top folder of the
// repository, and in is the folder there of the module that the package is built in. env is
// added to the environment of the go command, which downloads modules that are not in its
// cache.
//
// The texts of a module are those beside each package that is linked, and in the folders above
// it: modules hold copies of other people's packages, with licenses of their own. It is an
// error if there is none for a package.
func Of(ctx context.Context, root, in string, env []string, pkg string) ([]Text, error) {
	linked, err := list(ctx, filepath.Join(root, in), env, pkg)
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{Ours + "LICENSE": own}
	var missing []error
	for _, pkg := range linked {
		licensed, err := pkg.texts(found)
		if err != nil {
			return nil, err
		}
		if !licensed {
			missing = append(missing, fmt.Errorf("module %s has no license text for package %s", pkg.Module.Path, pkg.ImportPath))
		}
	}
	return sorted(found), errors.Join(missing...)
}

func sorted(found map[string][]byte) (texts []Text) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		texts = append(texts, Text{name, found[name]})
	}
	return texts
}

// Join puts the texts of several lists into one, each once.
func Join(lists ...[]Text) []Text {
	found := map[string][]byte{}
	for _, text := range slices.Concat(lists...) {
		found[text.Name] = text.Data
	}
	return sorted(found)
}

// A linkedPackage is what go list says of a package.
type linkedPackage struct {
	ImportPath, Dir string
	Standard        bool
	Module          *module
}

type module struct {
	Path, Version, Dir string
	Replace            *module
}

// list lists what a package links, without our own modules. The standard library counts as
// a module.
func list(ctx context.Context, dir string, env []string, pkg string) ([]linkedPackage, error) {
	goroot, err := goCommand(ctx, dir, env, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	out, err := goCommand(ctx, dir, env, "list", "-deps", "-json=ImportPath,Dir,Standard,Module", pkg)
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(goroot)), "\n")
	standard := &module{Path: "stdlib", Version: strings.TrimPrefix(version, "go"), Dir: root}
	var linked []linkedPackage
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg linkedPackage
		switch err := in.Decode(&pkg); {
		case err == io.EOF:
			return linked, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		case pkg.Standard:
			pkg.Module = standard
		case strings.HasPrefix(pkg.Module.Path, Ours):
			continue
		}
		if pkg.ImportPath != "unsafe" { // It has no code.
			linked = append(linked, pkg)
		}
	}
}

func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return out, nil
}

// texts adds the texts that concern the package, and reports whether a license is one of
// them.
func (p linkedPackage) texts(found map[string][]byte) (licensed bool, err error) {
	m := p.Module
	if m.Replace != nil && m.Replace.Version != "" { // Else it is a folder.
		m = m.Replace
	}
	name := m.Path + "@" + m.Version
	below, err := filepath.Rel(p.Module.Dir, p.Dir)
	if err != nil || !filepath.IsLocal(below) {
		return false, fmt.Errorf("package %s is in %s, outside of its module in %s", p.ImportPath, p.Dir, p.Module.Dir)
	}
	for ; ; below = filepath.Dir(below) {
		dir := filepath.Join(p.Module.Dir, below)
		files, err := os.ReadDir(dir)
		if err != nil {
			return false, err
		}
		for _, file := range files {
			isLicense := license.MatchString(file.Name())
			if file.IsDir() || strings.HasSuffix(file.Name(), ".go") || (!isLicense && !notice.MatchString(file.Name())) {
				continue
			}
			licensed = licensed || isLicense
			key := path.Join(name, filepath.ToSlash(below), file.Name())
			if found[key] == nil {
				if found[key], err = os.ReadFile(filepath.Join(dir, file.Name())); err != nil {
					return false, err
				}
			}
		}
		if below == "." {
			return licensed, nil
		}
	}
}

package nodeimages

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// packages are the installed packages of this machine, with the names of those
// that each depends on.
type packages map[string][]string

// setup are packages that others need to be installed and configured only, and
// not to run.
var setup = map[string]bool{"dpkg": true, "debconf": true, "install-info": true}

// documentation is left out of images.
var documentation = []string{"/usr/share/doc/", "/usr/share/man/", "/usr/share/lintian/", "/usr/share/locale/"}

// readPackages asks dpkg.
func readPackages() (packages, error) {
	output, err := dpkgQuery("--show", `--showformat=${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n`)
	if err != nil {
		return nil, err
	}
	return parsePackages(output), nil
}

// parsePackages reads lines of a name, what else the package stands for, and
// what it depends on, with tabs between them. A dependency may have alternatives
// (a | b): all count, and those that are not installed are nobody.
func parsePackages(text string) packages {
	installed := packages{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) != 3 {
			continue
		}
		installed[fields[0]] = names(fields[2])
		for _, provided := range names(fields[1]) {
			installed[provided] = append(installed[provided], fields[0])
		}
	}
	return installed
}

// names takes the names out of a list such as "libc6 (>= 2.36), a:any | b".
func names(list string) []string {
	var found []string
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' }) {
		name, _, _ := strings.Cut(strings.TrimSpace(item), " ")
		name, _, _ = strings.Cut(name, ":")
		if name != "" {
			found = append(found, name)
		}
	}
	return found
}

// closure returns the packages with all that they depend on.
func (p packages) closure(wanted []string) ([]string, error) {
	for _, name := range wanted {
		if _, ok := p[name]; !ok {
			return nil, fmt.Errorf("package %s is not installed; make cluster-packages installs it", name)
		}
	}
	seen := map[string]bool{}
	var all []string
	for queue := wanted; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if _, ok := p[name]; !ok || seen[name] || setup[name] {
			continue
		}
		seen[name] = true
		all = append(all, name)
		queue = append(queue, p[name]...)
	}
	return all, nil
}

// addPackages adds the files of installed packages.
func (t tree) addPackages(installed packages, wanted []string) error {
	all, err := installed.closure(wanted)
	if err != nil {
		return err
	}
	for _, name := range all {
		files, err := dpkgQuery("--listfiles", name)
		if err != nil {
			continue // a name that another package provides has no files
		}
		for file := range strings.Lines(files) {
			file = strings.TrimSpace(file)
			if !strings.HasPrefix(file, "/") || file == "/." || isDocumentation(file) {
				continue
			}
			if err := t.addHost(file); err != nil {
				return fmt.Errorf("package %s: %w", name, err)
			}
		}
	}
	return nil
}

func isDocumentation(file string) bool {
	for _, dir := range documentation {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}

func dpkgQuery(args ...string) (string, error) {
	var stderr bytes.Buffer
	command := exec.Command("dpkg-query", args...)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("dpkg-query %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(output), nil
}

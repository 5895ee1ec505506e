package conformancekit

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"jobpolicy.dev/test/executables"
)

// page is docs/remote.md.
type page string

func readPage() (page, error) {
	root, err := executables.Repository()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(root, "docs/remote.md"))
	return page(data), err
}

// What the page shows of the kit: the commands without an API server and with one, and
// the kubeconfig of a caller.
var (
	alone      = regexp.MustCompile("(?m)^\\./jobpolicy-conformance caller .*\\\\\n.*$")
	withServer = regexp.MustCompile("(?m)^\\./jobpolicy-conformance caller .*\\\\\n.* --kubeconfig .*\\\\\n.*$")
	kubeconfig = regexp.MustCompile("(?s)\n`kit\\.kubeconfig`:\n\n```yaml\n(.*?)```")
	someJobs   = regexp.MustCompile(`--jobs \d+`)
)

// command is that of the page, with that many Jobs, ports that are free, and the
// kubeconfig of an API server that the kit is to stand before, if any.
func (p page) command(jobs int, before string) (string, error) {
	find := alone
	if before != "" {
		find = withServer
	}
	command := find.FindString(string(p))
	if command == "" {
		return "", fmt.Errorf("docs/remote.md has no command %s", find)
	}
	command = someJobs.ReplaceAllString(command, fmt.Sprint("--jobs ", jobs))
	return strings.NewReplacer("localhost:8444", "localhost:0", "localhost:8001", "localhost:0", "admin.kubeconfig", "'"+before+"'").Replace(command), nil
}

// writeKubeconfig writes that of the page, with the address that the kit prints.
func (p page) writeKubeconfig(file string, printed *bufio.Reader) error {
	line, err := printed.ReadString('\n')
	if err != nil {
		return err
	}
	_, address, found := strings.Cut(strings.TrimSuffix(line, ".\n"), "API server at ")
	if !found {
		return fmt.Errorf("the kit printed %q, want where the API server is", line)
	}
	text := kubeconfig.FindStringSubmatch(string(p))
	if text == nil || !strings.Contains(text[1], "http://localhost:8001") {
		return fmt.Errorf("docs/remote.md has no block kit.kubeconfig with the address http://localhost:8001")
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(text[1], "http://localhost:8001", address)), 0o600)
}

package lint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// violations are files that break a rule each, and what golangci-lint must say about them.
var violations = map[string]struct{ file, text, want string }{
	"the contract imports the engine":           {"proto/a.go", `import _ "jobpolicy.dev/engine"`, "the contract imports nothing of this workspace"},
	"the engine imports the executor":           {"engine/a.go", `import _ "jobpolicy.dev/executor"`, "the engine imports only the contract"},
	"the executor imports the engine":           {"executor/a.go", `import _ "jobpolicy.dev/engine"`, "the executor imports only the contract"},
	"a service imports the local control plane": {"services/a.go", `import _ "jobpolicy.dev/deploy/local"`, "only the tests import the local control plane"},
	"the local control plane imports the tests": {"deploy/local/a.go", `import _ "jobpolicy.dev/test"`, "nothing imports the tests"},
	"a test of the engine uses Kubernetes":      {"engine/b_test.go", `import _ "k8s.io/api/batch/v1"`, "the engine knows no Kubernetes type"},
	"the engine uses a library not on its list": {"engine/c.go", `import _ "github.com/google/uuid"`, "engine-libraries"},
	"the engine uses the stubs":                 {"engine/d.go", `import _ "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"`, "use the messages only"},
	"the engine reads the clock":                {"engine/e.go", "import \"time\"\n\nvar now = time.Now()", "clock: use the request's now"},
	"the engine waits":                          {"engine/f.go", "import \"time\"\n\nvar tick = time.NewTicker", "clock: answer with a time"},
	"the engine uses the host's zone":           {"engine/g.go", "import \"time\"\n\nfunc g(t time.Time) time.Time { return t.Local() }", "clock: the host's time zone"},
	"the engine reads the host's zones":         {"engine/h.go", "import \"time\"\n\nvar load = time.LoadLocation", "use engine/zone"},
	"the engine prints":                         {"engine/i.go", "import \"fmt\"\n\nfunc i() { fmt.Println() }", "I/O: return the text as a value"},
	"the engine prints with a builtin":          {"engine/j.go", "func j() { println() }", "I/O: return the text as a value"},
	"the engine draws a number":                 {"engine/k.go", `import _ "math/rand/v2"`, "randomness"},
	"the engine opens a file":                   {"engine/l.go", `import _ "os"`, "I/O: carry the fact in the request"},
	"the engine has a lock":                     {"engine/m.go", `import _ "sync"`, "concurrency"},
	"a function is too long":                    {"services/n.go", "func n() {\n" + strings.Repeat("\tprintln()\n", 71) + "}", "Function 'n' is too long"},
}

// libraries stand in for the modules of the packages that the violations import.
var libraries = map[string]string{
	"jobpolicy.dev/engine": ".", "jobpolicy.dev/executor": ".", "jobpolicy.dev/deploy/local": ".", "jobpolicy.dev/test": ".",
	"jobpolicy.dev/proto": "jobpolicy/v1/jobpolicyv1grpc", "k8s.io/api": "batch/v1", "github.com/google/uuid": ".",
}

func TestEachRuleFindsItsViolation(t *testing.T) {
	root := t.TempDir()
	config, err := os.ReadFile("../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, ".golangci.yml"), string(config))
	goMod := "module example.com/workspace\n\ngo 1.26.0\n"
	for module, pkg := range libraries {
		dir := filepath.Join(t.TempDir(), "library")
		write(t, filepath.Join(dir, "go.mod"), "module "+module+"\n\ngo 1.26.0\n")
		write(t, filepath.Join(dir, pkg, "a.go"), "package a\n")
		goMod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, dir)
	}
	write(t, filepath.Join(root, "go.mod"), goMod)
	for _, v := range violations {
		write(t, filepath.Join(root, v.file), "package "+filepath.Base(filepath.Dir(v.file))+"\n\n"+v.text+"\n")
	}
	out := golangciLint(t, root)
	for name, v := range violations {
		found := func(line string) bool { return strings.HasPrefix(line, v.file+":") && strings.Contains(line, v.want) }
		if !slices.ContainsFunc(strings.Split(out, "\n"), found) {
			t.Errorf("%s: no line about %s says %q", name, v.file, v.want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// golangciLint runs the pinned golangci-lint and returns what it found.
func golangciLint(t *testing.T, root string) string {
	t.Helper()
	program, err := exec.Command("go", "tool", "-n", "golangci-lint").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strings.TrimSpace(string(program)), "run", "--output.text.print-issued-lines=false", "--output.text.colors=false", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOLANGCI_LINT_CACHE="+t.TempDir())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("golangci-lint: %v, want exit status 1:\n%s", err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

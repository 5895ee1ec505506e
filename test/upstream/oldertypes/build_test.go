package oldertypes

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
)

// older is the version of k8s.io/api whose types of pods the executor gets.
const older = "v0.36.3"

// laterSymbols are what else client-go needs of core/v1: types that came after that version. No type of core/v1
// has a field of them.
const laterSymbols = `package v1

type (
	HTTPProtocol           string
	GRPCProbeMode          string
	VolumeHealthStatusType string
)
`

// useOlderExecutor lets control planes of this test start an executor that is compiled with older types.
func useOlderExecutor(t *testing.T) {
	t.Helper()
	programs := executables.MustDir(t)
	root, err := executables.Repository()
	check(t, err)
	// The folder stays, because the build cache knows sources by their folder.
	dir := filepath.Join(root, "bin", "oldertypes")
	check(t, os.RemoveAll(dir))
	composeTypes(t, filepath.Join(dir, "api"))
	binaries := t.TempDir()
	buildExecutor(t, filepath.Join(root, "services"), dir, filepath.Join(binaries, "jobpolicy-executor"))
	entries, err := os.ReadDir(programs)
	check(t, err)
	for _, entry := range entries {
		if entry.Name() != "jobpolicy-executor" {
			check(t, os.Symlink(filepath.Join(programs, entry.Name()), filepath.Join(binaries, entry.Name())))
		}
	}
	t.Setenv("JOBPOLICY_BIN_DIR", binaries)
}

// composeTypes makes a k8s.io/api of the current version that has the older core/v1. The executor reads fields of
// batch/v1 that the older one lacks.
func composeTypes(t *testing.T, dir string) {
	t.Helper()
	check(t, os.CopyFS(dir, os.DirFS(moduleDir(t, "k8s.io/api"))))
	source := moduleDir(t, "k8s.io/api@"+older)
	core := filepath.Join(dir, "core/v1")
	check(t, os.RemoveAll(core))
	check(t, os.CopyFS(core, os.DirFS(filepath.Join(source, "core/v1"))))
	check(t, os.WriteFile(filepath.Join(core, "latersymbols.go"), []byte(laterSymbols), 0o600))
	types, err := os.ReadFile(filepath.Join(core, "types.go"))
	check(t, err)
	if bytes.Contains(types, []byte("EvictionResponders ")) {
		t.Fatal("core/v1 has EvictionResponders, so this test shows nothing")
	}
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	if !strings.Contains(module, "@") {
		return strings.TrimSpace(string(output(t, "go", "list", "-m", "-f", "{{.Dir}}", module)))
	}
	var downloaded struct{ Dir string }
	check(t, json.Unmarshal(output(t, "go", "mod", "download", "-json", module), &downloaded))
	return downloaded.Dir
}

// buildExecutor builds the executor with the types in dir.
func buildExecutor(t *testing.T, services, dir, program string) {
	t.Helper()
	module, err := os.ReadFile(filepath.Join(services, "go.mod"))
	check(t, err)
	sums, err := os.ReadFile(filepath.Join(services, "go.sum"))
	check(t, err)
	module = append(module, []byte("\nreplace k8s.io/api => "+filepath.Join(dir, "api")+"\n")...)
	check(t, os.WriteFile(filepath.Join(dir, "older.mod"), module, 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "older.sum"), sums, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile="+filepath.Join(dir, "older.mod"), "-o", program, "./cmd/jobpolicy-executor")
	build.Dir, build.Env = services, append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	check(t, err)
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	must.Succeed(t, err)
}

package clients

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/certificates"
	"jobpolicy.dev/test/kit/executables"
)

// An engine is a policy engine of its own for a client that asks one. The executor has another.
type engine struct {
	// program is its executable; certificates is a folder for both sides.
	program, certificates string
	address               string
	process               *exec.Cmd
}

// startEngine starts an engine, and kills it when the test ends.
func startEngine(t *testing.T, program string) *engine {
	t.Helper()
	e := &engine{program: program, certificates: certificates.Folder(t), address: "localhost:" + freeport.PortFor(t)}
	e.start(t)
	t.Cleanup(e.kill)
	return e
}

// engineProgram is the executable of the engine.
func engineProgram(t *testing.T) string {
	return filepath.Join(executables.MustDir(t), "jobpolicy-engine")
}

func (e *engine) start(t *testing.T) {
	t.Helper()
	e.process = exec.CommandContext(context.WithoutCancel(t.Context()), e.program, "--grpc-address="+e.address, "--http-address=",
		"--tls-cert-file="+filepath.Join(e.certificates, "tls.crt"), "--tls-private-key-file="+filepath.Join(e.certificates, "tls.key"),
		"--client-ca-file="+filepath.Join(e.certificates, "ca.crt"))
	must.Succeed(t, e.process.Start())
}

// kill is what happens to an engine whose node is lost.
func (e *engine) kill() {
	_ = e.process.Process.Kill() // It may have ended.
	_ = e.process.Wait()
}

// variables tell a client where the engine is.
func (e *engine) variables() []string {
	return []string{"JOBPOLICY_ENGINE=dns:///" + e.address, "JOBPOLICY_CERTIFICATES=" + e.certificates}
}

// A defect is one change of the engine.
type defect struct{ file, old, planted string }

// build compiles the engine with the defect in it.
func (d defect) build(t *testing.T) string {
	t.Helper()
	root, err := executables.Repository()
	must.Succeed(t, err)
	source, err := os.ReadFile(filepath.Join(root, d.file))
	must.Succeed(t, err)
	if n := strings.Count(string(source), d.old); n != 1 {
		t.Fatalf("%q stands %d times in %s, want once", d.old, n, d.file)
	}
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "jobpolicy-engine")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, d.file): changed}})
	must.Succeed(t, err)
	for file, text := range map[string]string{changed: strings.Replace(string(source), d.old, d.planted, 1), overlay: string(replace)} {
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	}
	goCommand(t, root, nil, "build", "-overlay", overlay, "-o", program, "./services/cmd/jobpolicy-engine")
	return program
}

// goCommand runs the go command in a folder; the test fails if it does.
func goCommand(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	if out, err := tryGo(t, dir, env, args...); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

func tryGo(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

package faults

import (
	"bytes"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
)

// A process is an executor behind a proxy, or, if it has no URL, a kube-controller-manager with the built-in
// controllers of Jobs.
type process struct {
	url  string
	cmd  *exec.Cmd
	log  *lockedBuffer
	done bool
}

// startProcess starts an executor that manages all Jobs that the proxy shows it. The
// caller stops it.
func startProcess(t *testing.T, p *Proxy, flags []string) *process {
	t.Helper()
	address := freeport.AddressFor(t)
	x := startProgram(t, p, "jobpolicy-executor", append([]string{
		"--http-address=" + address, "--engine=embedded", "--replace-builtin", "--leader-elect=false",
		"--pod-failure-backoff=1s", "--kube-api-qps=1000", "--kube-api-burst=1000",
	}, flags...)...)
	x.url = "http://" + address
	return x
}

// startBuiltIn starts the built-in controllers for what the proxy shows them.
func startBuiltIn(t *testing.T, p *Proxy) *process {
	t.Helper()
	return startProgram(t, p, "jobpolicy-local", cluster.ControllerManager, "--controllers=job-controller,ttl-after-finished-controller",
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000")
}

// startProgram starts one of our programs with arguments and the proxy's kubeconfig.
func startProgram(t *testing.T, p *Proxy, program string, args ...string) *process {
	t.Helper()
	kubeconfig, err := p.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatalf("kubeconfig: %v", err)
	}
	x := &process{log: &lockedBuffer{}, cmd: exec.Command(filepath.Join(binaries, program), append(args, "--kubeconfig="+kubeconfig)...)}
	x.cmd.Stderr = x.log
	must.Succeed(t, x.cmd.Start())
	return x
}

// kill ends the executor as kill -9 does.
func (x *process) kill() {
	if x.done {
		return
	}
	x.done = true
	_ = x.cmd.Process.Kill() // it may have ended
	_ = x.cmd.Wait()
}

// stop sends SIGTERM to the executor, and expects that it ends without an error.
func (x *process) stop(t *testing.T) {
	if x.done {
		return
	}
	x.done = true
	_ = x.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("the executor ended with: %v", err)
	}
}

// ready returns the answer of /readyz.
func (x *process) ready() (bool, string) {
	if x.url == "" {
		return true, "" // It serves nothing; tests wait for what it does.
	}
	response, err := http.Get(x.url + "/readyz")
	if err != nil {
		return false, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // only for the message
	return response.StatusCode == http.StatusOK, string(body)
}

// A lockedBuffer collects a process's log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

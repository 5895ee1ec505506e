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

	"jobpolicy.dev/deploy/local/freeport"
)

// A process is an executor behind a proxy.
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
	kubeconfig, err := p.Kubeconfig(t.TempDir())
	if err != nil {
		t.Fatalf("kubeconfig: %v", err)
	}
	address := freeport.AddressFor(t)
	args := append([]string{
		"--kubeconfig=" + kubeconfig, "--http-address=" + address, "--engine=embedded", "--replace-builtin", "--leader-elect=false",
		"--pod-failure-backoff=1s", "--kube-api-qps=1000", "--kube-api-burst=1000",
	}, flags...)
	x := &process{url: "http://" + address, log: &lockedBuffer{}, cmd: exec.Command(filepath.Join(binaries, "jobpolicy-executor"), args...)}
	x.cmd.Stderr = x.log
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

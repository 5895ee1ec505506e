// Package conformancekit lets jobpolicy-conformance watch the callers that tests start.
package conformancekit

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Kit is an engine that checks its callers.
type Kit struct {
	// Address is where it listens.
	Address string
	// Certificates is a folder with ca.crt, tls.crt and tls.key. One certificate is the
	// authority, the kit and its caller.
	Certificates string
	// Kubeconfig leads a caller to its API server through the kit; "" without one.
	Kubeconfig string

	cmd  *exec.Cmd
	rest chan string
}

// Start builds the kit and lets it wait for a caller with that many Jobs. The kit stands
// before the API server of a kubeconfig; "": it sees nothing of a cluster. The commands
// and the caller's kubeconfig are those of docs/remote.md.
func Start(t *testing.T, jobs int, before string) *Kit {
	t.Helper()
	dir := Certificates(t)
	program := filepath.Join(dir, "jobpolicy-conformance")
	if out, err := exec.Command("go", "build", "-o", program, "jobpolicy.dev/services/cmd/jobpolicy-conformance").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page, err := readPage()
	if err != nil {
		t.Fatal(err)
	}
	command, err := page.command(jobs, before)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{"tls", "engine"} { // The folders on the page.
		if err := os.Symlink(".", filepath.Join(dir, side)); err != nil {
			t.Fatal(err)
		}
	}
	k := &Kit{Certificates: dir, rest: make(chan string, 1)}
	k.cmd = exec.Command("bash", "-c", "exec "+command)
	k.cmd.Dir, k.cmd.Stderr = dir, os.Stderr
	out, err := k.cmd.StdoutPipe()
	if err == nil {
		err = k.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.cmd.Process.Kill() })
	printed := bufio.NewReader(out)
	first, err := printed.ReadString('\n')
	_, address, found := strings.Cut(first, "engine at ")
	if err != nil || !found {
		t.Fatalf("the kit printed %q, %v", first, err)
	}
	_, port, err := net.SplitHostPort(strings.Fields(address)[0])
	if err != nil {
		t.Fatal(err)
	}
	k.Address = net.JoinHostPort("localhost", port)
	if before != "" {
		k.Kubeconfig = filepath.Join(dir, "kit.kubeconfig")
		if err := page.writeKubeconfig(k.Kubeconfig, printed); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		rest, _ := io.ReadAll(printed)
		k.rest <- string(rest)
	}()
	return k
}

// Certificates makes the folder.
func Certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sh := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
		"-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "tls.key", "-out", "tls.crt")
	sh.Dir = dir
	out, err := sh.CombinedOutput()
	if err == nil {
		err = os.Symlink("tls.crt", filepath.Join(dir, "ca.crt"))
	}
	if err != nil {
		t.Fatalf("openssl: %v\n%s", err, out)
	}
	return dir
}

// Check waits for the result, which must be that the caller does everything right.
func (k *Kit) Check(t *testing.T) {
	t.Helper()
	table := <-k.rest
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, table)
		return
	}
	t.Log(table)
}

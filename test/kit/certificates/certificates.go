// Package certificates makes the certificates with which tests call an engine.
package certificates

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Folder makes a folder with ca.crt, tls.crt and tls.key: one certificate for localhost that
// is the authority, the engine's and its callers'.
func Folder(t *testing.T) string {
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

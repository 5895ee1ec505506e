package jobpolicyv1grpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// test/examples/processes dials a real engine.
func TestDialNamesTheFileThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	dialFails(t, dir, "ca.crt: no such file")
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	dialFails(t, dir, "ca.crt has no certificate")
}

func dialFails(t *testing.T, dir, want string) {
	t.Helper()
	if _, err := Dial("dns:///localhost:1", dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want one with %q", err, want)
	}
}

package testenv

import (
	"net"
	"os"
	"testing"
)

// ReadFile returns what a file holds.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// WriteFile writes a file that only this user may read.
func WriteFile[T string | []byte](t testing.TB, name string, content T) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Listen listens on a free port of this machine until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() }) // A server that was stopped has closed it already.
	return lis
}

package testenv

import (
	"testing"
	"time"
)

// waitTimeout ends waits that would never end. Tests expect much less.
const waitTimeout = 30 * time.Second

// Eventually waits until check returns nil, and fails the test if it never does.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("does not happen: %v", err)
}

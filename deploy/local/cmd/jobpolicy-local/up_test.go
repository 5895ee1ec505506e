package main

import (
	"syscall"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func TestSignalsWhileStopping(t *testing.T) {
	running, stop := signalContext()
	defer stop()
	interrupt(t)
	<-running.Done()

	patience, release := stopContext()
	defer release()
	interrupt(t) // an echo of the first
	if err := patience.Err(); err != nil {
		t.Fatalf("patience ended at once: %v", err)
	}
	deadline := time.After(time.Minute)
	for {
		select {
		case <-patience.Done():
			return
		case <-deadline:
			t.Fatal("further signals do not end the wait")
		case <-time.After(20 * time.Millisecond):
			interrupt(t)
		}
	}
}

// interrupt sends this process the signal of Ctrl-C. The test goes on, because something
// always listens for that signal.
func interrupt(t *testing.T) {
	t.Helper()
	must.Succeed(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
}

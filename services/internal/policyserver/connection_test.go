package policyserver

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// An endlessListener has always one more connection.
type endlessListener struct{ net.Listener }

func (endlessListener) Accept() (net.Conn, error) { return nil, nil }

func TestConnectionsAreAcceptedAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := rateLimited(endlessListener{})
		accept := func(n int) time.Duration {
			start := time.Now()
			for range n {
				if _, err := lis.Accept(); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(start)
		}
		if took := accept(maxHandshakes); took != 0 {
			t.Errorf("the first %d connections took %s, want none to wait", maxHandshakes, took)
		}
		if took := accept(2 * connectionsPerSecond); took.Round(10*time.Millisecond) != 2*time.Second {
			t.Errorf("%d more connections took %s, want 2s", 2*connectionsPerSecond, took)
		}
		time.Sleep(time.Minute)
		if took := accept(maxHandshakes); took != 0 {
			t.Errorf("%d connections a minute later took %s, want none to wait", maxHandshakes, took)
		}
	})
}

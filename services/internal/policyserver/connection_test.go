package policyserver

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
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

// A lateEnd ends every handshake just as it has succeeded.
type lateEnd struct {
	credentials.TransportCredentials
	gate *gate
}

func (l lateEnd) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := l.TransportCredentials.ServerHandshake(raw)
	l.gate.handshakes.end()
	return conn, info, err
}

// gRPC does not close what a handshake returns if the connection below it is closed
// already, so the caller's place would stay taken.
func TestAConnectionThatIsEndedAsItBeginsTakesNoPlace(t *testing.T) {
	metrics, err := newCallMetrics(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cs := testCallers(10, 10)
	g := newGate(insecure.NewCredentials(), cs, nil, metrics)
	g.TransportCredentials = lateEnd{g.TransportCredentials, g}
	raw, other := net.Pipe()
	defer other.Close()
	if _, _, err := g.ServerHandshake(raw); err == nil {
		t.Error("it is let in")
	}
	if cs.open != 0 {
		t.Errorf("%d places are taken, want none", cs.open)
	}
}

// What a client sends while it reads nothing would stay in memory: the calls end, but their
// streams do not before their errors are written.
func TestNothingIsReceivedFromAClientThatDoesNotRead(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	conn := &connection{Conn: server}
	go func() { _, _ = conn.Write([]byte("x")) }()
	for conn.written.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * stalledWriteThreshold)
	received := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		received <- err
	}()
	go func() { _, _ = client.Write([]byte("y")) }()
	select {
	case <-received:
		t.Fatal("it is received although the client reads nothing")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := client.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Errorf("once the client reads: %v", err)
	}
}

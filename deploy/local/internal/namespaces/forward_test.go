package namespaces

import (
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/internal/supervise"
	"jobpolicy.dev/deploy/local/must"
)

// echo answers each connection with what it reads, and then ends it. It returns
// its address.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	must.Succeed(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// dialForwarded opens a connection that is forwarded to an address. Both ends are in the
// machine's own network namespace, so the listener and the forwarder have different
// addresses.
func dialForwarded(t *testing.T, to string) net.Conn {
	t.Helper()
	inside, err := supervise.StartThread(func() error { return nil })
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(inside.End)
	f := NewForwarder(inside)
	t.Cleanup(f.Close)
	listener, err := net.Listen("tcp", "127.0.0.3:0")
	must.Succeed(t, err)
	t.Cleanup(func() { listener.Close() })
	go f.serve(listener, to)
	conn, err := net.DialTimeout("tcp", listener.Addr().String(), time.Minute)
	must.Succeed(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestForward(t *testing.T) {
	conn := dialForwarded(t, echo(t))
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	// When one direction ends, the other end must learn that, and the other direction
	// must go on.
	must.Succeed(t, conn.(*net.TCPConn).CloseWrite())
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v; want what was sent", got, err)
	}
}

func TestAConnectionToNobodyInsideEnds(t *testing.T) {
	conn := dialForwarded(t, "127.0.0.3:1")
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("got %v, want an end", err)
	}
}

func TestConfigIsReadAsItWasSaved(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	want := Config{
		Hostname: "h", Root: filepath.Join(dir, "root"), NodeAddress: netip.MustParseAddr("172.30.0.1"),
		ServiceRange: netip.MustParsePrefix("10.96.0.0/16"), Cgroup: "a/b",
	}
	must.Succeed(t, want.Save(file))
	got, err := load(file)
	must.Succeed(t, err)
	if got.NodeAddress != want.NodeAddress || got.ServiceRange != want.ServiceRange || got.Cgroup != want.Cgroup || got.Root != want.Root {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want.Ready() == nil {
		t.Error("it is ready before Init has run")
	}
}

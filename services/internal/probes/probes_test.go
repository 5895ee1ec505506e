package probes_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/services/internal/probes"
	"jobpolicy.dev/services/internal/testenv"
)

func serve(t *testing.T, cfg probes.Config) (server *probes.Server, base string) {
	t.Helper()
	cfg.Logger = (&testenv.Log{}).Logger()
	if cfg.Gatherer == nil {
		cfg.Gatherer = prometheus.NewRegistry()
	}
	lis := testenv.Listen(t)
	server = probes.New(cfg)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v after Close, want nil", err)
		}
	})
	return server, "http://" + lis.Addr().String()
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestReadyzSaysWhatIsMissing(t *testing.T) {
	fine := func(context.Context) error { return nil }
	missing := func(context.Context) error { return errors.New("pods not listed yet") }
	cases := map[string]struct {
		ready    []probes.Check
		drain    bool
		wantCode int
		wantBody string
	}{
		"all is there": {
			ready:    []probes.Check{{Name: "caches", Run: fine}, {Name: "engine", Run: fine}},
			wantCode: http.StatusOK, wantBody: "[+] caches: ok\n[+] engine: ok\n",
		},
		"something is missing": {
			ready:    []probes.Check{{Name: "caches", Run: missing}, {Name: "engine", Run: fine}},
			wantCode: http.StatusServiceUnavailable, wantBody: "[-] caches: pods not listed yet\n[+] engine: ok\n",
		},
		"what is missing is not needed for now": {
			ready:    []probes.Check{{Name: "caches", Run: missing, Idle: func() (string, bool) { return "standing by", true }}, {Name: "engine", Run: fine}},
			wantCode: http.StatusOK, wantBody: "[.] caches: not needed: standing by\n[+] engine: ok\n",
		},
		"it is needed again": {
			ready:    []probes.Check{{Name: "caches", Run: missing, Idle: func() (string, bool) { return "", false }}},
			wantCode: http.StatusServiceUnavailable, wantBody: "[-] caches: pods not listed yet\n",
		},
		"the service drains": {
			ready: []probes.Check{{Name: "caches", Run: fine}}, drain: true,
			wantCode: http.StatusServiceUnavailable, wantBody: "[-] shutdown: draining\n[+] caches: ok\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, base := serve(t, probes.Config{Ready: tc.ready})
			if tc.drain {
				server.Drain()
			}
			code, body := get(t, base+"/readyz")
			if code != tc.wantCode || body != tc.wantBody {
				t.Errorf("/readyz = %d %q, want %d %q", code, body, tc.wantCode, tc.wantBody)
			}
			if code, _ := get(t, base+"/healthz"); code != http.StatusOK {
				t.Errorf("/healthz = %d, want 200: the process is alive", code)
			}
		})
	}
}

// A pod's probes and metrics are reached from the network, its debug pages are
// not.
func TestDebugPagesAreForTheSameMachine(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	server := probes.New(probes.Config{
		Gatherer: prometheus.NewRegistry(), Logger: (&testenv.Log{}).Logger(), Profiling: true,
		Debug: map[string]http.Handler{"GET /debug/x": page},
	})
	for _, tc := range []struct {
		from, path string
		want       int
	}{
		{from: "127.0.0.1:1234", path: "/debug/x", want: http.StatusOK},
		{from: "[::1]:1234", path: "/debug/x", want: http.StatusOK},
		{from: "[::ffff:127.0.0.1]:1234", path: "/debug/x", want: http.StatusOK},
		{from: "10.0.0.7:1234", path: "/debug/x", want: http.StatusForbidden},
		{from: "10.0.0.7:1234", path: "/debug/pprof/heap", want: http.StatusForbidden},
		{from: "not an address", path: "/debug/x", want: http.StatusForbidden},
		{from: "10.0.0.7:1234", path: "/healthz", want: http.StatusOK},
		{from: "10.0.0.7:1234", path: "/metrics", want: http.StatusOK},
	} {
		request := httptest.NewRequest(http.MethodGet, tc.path, nil)
		request.RemoteAddr, request.Host = tc.from, "localhost:9080"
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, request)
		if answer.Code != tc.want {
			t.Errorf("%s from %s = %d, want %d", tc.path, tc.from, answer.Code, tc.want)
		}
	}
}

func TestMetricsAndDebugPagesAreServed(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "seen_total", Help: "Seen."})
	registry.MustRegister(counter)
	counter.Inc()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	_, base := serve(t, probes.Config{Gatherer: registry, Debug: map[string]http.Handler{"GET /debug/x": page}})

	if code, body := get(t, base+"/metrics"); code != http.StatusOK || body != "# HELP seen_total Seen.\n# TYPE seen_total counter\nseen_total 1\n" {
		t.Errorf("/metrics = %d %q", code, body)
	}
	if code, body := get(t, base+"/debug/x"); code != http.StatusOK || body != "page" {
		t.Errorf("/debug/x = %d %q", code, body)
	}
	if code, _ := get(t, base+"/nothing"); code != http.StatusNotFound {
		t.Errorf("/nothing = %d, want 404", code)
	}
}

// Profiles tell much about a process, and cost it time: they are served on demand.
func TestProfilesAreServedOnDemandOnly(t *testing.T) {
	for profiling, want := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
		_, base := serve(t, probes.Config{Profiling: profiling})
		for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/profile?seconds=1"} {
			if code, _ := get(t, base+path); code != want {
				t.Errorf("%s with profiling %t = %d, want %d", path, profiling, code, want)
			}
		}
	}
}

func TestCachedCheckAsksOnceInItsTime(t *testing.T) {
	var asked atomic.Int32
	refusal := errors.New("no")
	check := probes.Cached(probes.Check{Name: "engine", Run: func(context.Context) error {
		asked.Add(1)
		return refusal
	}}, time.Hour, time.Second)
	for range 3 {
		if err := check.Run(t.Context()); !errors.Is(err, refusal) {
			t.Errorf("Run() = %v, want %v", err, refusal)
		}
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}

	asked.Store(0)
	eager := probes.Cached(probes.Check{Run: func(context.Context) error { asked.Add(1); return nil }}, 0, time.Second)
	for range 3 {
		_ = eager.Run(t.Context())
	}
	if got := asked.Load(); got != 3 {
		t.Errorf("asked %d times once the answer is old, want each time", got)
	}
}

func TestCachedCheckIsBounded(t *testing.T) {
	check := probes.Cached(probes.Check{Run: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}, time.Hour, time.Millisecond)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	// Not the prober's context: its answer is kept for others.
	if err := check.Run(gone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run() = %v, want the check's own deadline", err)
	}
}

// /healthz fails for a defect of the process, and for nothing that is only missing.
func TestHealthzSaysWhyTheProcessShouldBeRestarted(t *testing.T) {
	var problem error
	_, base := serve(t, probes.Config{
		Ready: []probes.Check{{Name: "engine", Run: func(context.Context) error { return errors.New("away") }}},
		Alive: []probes.Check{{Name: "progress", Run: func(context.Context) error { return problem }}},
	})
	if code, body := get(t, base+"/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz = %d %q, want 200", code, body)
	}
	problem = errors.New("is stalled")
	if code, body := get(t, base+"/healthz"); code != http.StatusInternalServerError || body != "[-] progress: is stalled\n" {
		t.Errorf("/healthz = %d %q, want 500 and why", code, body)
	}
}

// Whoever keeps many connections open keeps nobody else out, and has only so many. The first
// connection is that of another address, and stays.
func TestConnectionsAreBounded(t *testing.T) {
	_, base := serve(t, probes.Config{})
	address := strings.TrimPrefix(base, "http://")
	var first net.Conn
	var open []*bufio.Reader
	for i := range 300 {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
		if i == 0 {
			from.IP = net.IPv4(127, 0, 0, 2)
		}
		conn, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		// After an answer it may be idle for long.
		answer := bufio.NewReader(conn)
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(answer, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("/healthz: %v", err)
		} else if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = conn
		}
		open = append(open, answer)
	}
	for i, conn := range open[1 : 1+300-128] {
		if _, err := conn.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d is still open", 1+i)
		}
	}
	if err := first.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := open[0].ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of another address: %v, want it open", err)
	}
	if code, _ := get(t, base+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz = %d, want 200", code)
	}
}

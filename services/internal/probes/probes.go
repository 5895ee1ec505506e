// Package probes serves a service's HTTP endpoints: liveness, readiness with a list of what
// is missing, metrics, and profiles if they are switched on. A Watch says whether the process lives.
//
// Weighed against x/net's netutil.LimitListener, which bounds all connections together, so that one
// client may take all of them.
package probes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jobpolicy.dev/services/internal/logging"
)

const (
	readHeaderTimeout = 5 * time.Second
	// Requests have no body, or a short one.
	readTimeout  = 10 * time.Second
	idleTimeout  = time.Minute
	closeTimeout = time.Second
	// maxHeaderBytes is how long the header of a request may be; net/http adds 4 KiB. It is read
	// whole before anything else, and in memory it may take 25 times as much.
	maxHeaderBytes = 8 << 10
)

// A Check is one condition for the service to be ready.
type Check struct {
	// Name is the condition's name in the body of /readyz.
	Name string
	// Run returns nil if the condition holds, and otherwise what is missing.
	Run func(context.Context) error
	// Idle reports whether the check does not apply at the moment, and why. nil: it
	// always applies.
	Idle func() (why string, idle bool)
	// Note returns further information on a check that passes. nil: there is none.
	Note func() string
}

// Look runs the check and says in words what it found. unneeded says that it does not apply.
func (c Check) Look(ctx context.Context) (text string, unneeded bool, err error) {
	if c.Idle != nil {
		if why, idle := c.Idle(); idle {
			return "not needed: " + why, true, nil
		}
	}
	if err := c.Run(ctx); err != nil {
		return err.Error(), false, err
	}
	if c.Note != nil {
		return "ok, " + c.Note(), false, nil
	}
	return "ok", false, nil
}

// Config configures a Server.
type Config struct {
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
	// Ready lists the conditions.
	Ready []Check
	// Alive lists conditions. If one does not hold, the process should be restarted. Their
	// Idle and Note are not used.
	Alive []Check
	// Profiling also serves /debug/pprof/.
	Profiling bool
	// Debug has more handlers, by pattern of http.ServeMux. They answer only clients on
	// the same machine, and no page of another site.
	Debug map[string]http.Handler
}

// Server serves /healthz, /readyz, /metrics, and what its Config adds.
type Server struct {
	http     *http.Server
	checks   []Check
	alive    []Check
	draining atomic.Bool
}

// New returns a Server that does not listen yet.
func New(cfg Config) *Server {
	s := &Server{checks: cfg.Ready, alive: cfg.Alive}
	// Each client that goes away before its answer is complete causes an error.
	failed := slog.NewLogLogger(logging.Bounded(cfg.Logger).Handler(), slog.LevelWarn)
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", readInTime(http.HandlerFunc(s.healthz)))
	mux.Handle("GET /readyz", readInTime(http.HandlerFunc(s.readyz)))
	mux.Handle("GET /metrics", oneAtATime(promhttp.HandlerFor(cfg.Gatherer, promhttp.HandlerOpts{
		ErrorLog:          failed,
		EnableOpenMetrics: true, // for exemplars
	})))
	if cfg.Profiling {
		mux.Handle("GET /debug/pprof/", local(http.HandlerFunc(pprof.Index)))
		mux.Handle("GET /debug/pprof/profile", local(http.HandlerFunc(pprof.Profile)))
		mux.Handle("GET /debug/pprof/symbol", local(http.HandlerFunc(pprof.Symbol)))
		mux.Handle("GET /debug/pprof/trace", local(http.HandlerFunc(pprof.Trace)))
	}
	for pattern, h := range cfg.Debug {
		mux.Handle(pattern, local(h))
	}
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         newConnections().changed,
		ErrorLog:          failed,
	}
	return s
}

// Handler returns the handler of all endpoints.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Drain makes /readyz answer 503 from now on.
func (s *Server) Drain() { s.draining.Store(true) }

// Serve serves until Close, and then returns nil.
func (s *Server) Serve(lis net.Listener) error {
	if err := s.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// Close gives requests in progress a second to finish.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // Nobody is left to return the error to.
	}
}

// healthz fails when the process should be restarted, and then says why.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	for _, c := range s.alive {
		if err := c.Run(r.Context()); err != nil {
			http.Error(w, fmt.Sprintf("[-] %s: %v", c.Name, err), http.StatusInternalServerError)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

var errDraining = errors.New("draining")

// readyz lists every check, so that one request shows everything that is missing.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	var body strings.Builder
	code := http.StatusOK
	missing := func(name string, err error) {
		code = http.StatusServiceUnavailable
		fmt.Fprintf(&body, "[-] %s: %v\n", name, err)
	}
	if s.draining.Load() {
		missing("shutdown", errDraining)
	}
	for _, c := range s.checks {
		switch text, unneeded, err := c.Look(r.Context()); {
		case err != nil:
			missing(c.Name, err)
		case unneeded:
			fmt.Fprintf(&body, "[.] %s: %s\n", c.Name, text)
		default:
			fmt.Fprintf(&body, "[+] %s: %s\n", c.Name, text)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprint(w, body.String())
}

// Cached returns a check that runs c at most once in ttl, for at most timeout, and
// returns the last result in between. So frequent probes do not load the server that c
// asks.
func Cached(c Check, ttl, timeout time.Duration) Check {
	var mu sync.Mutex
	var asked time.Time
	var last error
	return Check{Name: c.Name, Idle: c.Idle, Note: c.Note, Run: func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if !asked.IsZero() && time.Since(asked) < ttl {
			return last
		}
		// Other probes get the same result, so it must not depend on this one's context.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		last = c.Run(ctx)
		asked = time.Now()
		return last
	}}
}

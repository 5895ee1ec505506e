package api

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"time"
)

// watchRetry is the shortest time between two tries of a watch that did not reach the API server. The
// longest is twice as long.
const watchRetry = time.Second

// Transport returns a transport that asks again after each new connection, whose other end may be another
// API server, or the same one of another version.
//
// It also tries a watch that does not reach the API server again, until its context ends. Otherwise
// client-go's reflector does so, and waits up to a minute between two tries: after an upgrade of the API
// server, Jobs would stand still for that long. A watch that is refused is left to the reflector.
func (s *Server) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{next, s.cfg.Logger, func(conn httptrace.GotConnInfo) {
		if !conn.Reused {
			s.Ask()
		}
	}}
}

type transport struct {
	http.RoundTripper
	log     *slog.Logger
	gotConn func(httptrace.GotConnInfo)
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	// Each request has a trace of its own, because WithClientTrace changes the one that it is given.
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: t.gotConn}))
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil || !isWatch(r) {
		return resp, err
	}
	t.log.WarnContext(ctx, "watch interrupted, the API server cannot be reached", slog.String("path", r.URL.Path), slog.Any("error", err))
	for err != nil && pause(ctx) {
		resp, err = t.RoundTripper.RoundTrip(r)
	}
	return resp, err
}

func isWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true"
}

// pause waits before another try, and reports whether ctx has not ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(watchRetry + rand.N(watchRetry)):
		return true
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

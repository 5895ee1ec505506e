package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// Another connection may lead to another server; the same one does not.
func TestNewConnectionsAreSeen(t *testing.T) {
	s, err := NewServer(ServerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer web.Close()
	client := http.Client{Transport: s.Transport(http.DefaultTransport)}
	asks := func() bool {
		resp, err := client.Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		select {
		case <-s.again:
			return true
		default:
			return false
		}
	}
	for i, want := range []bool{true, false, false} {
		if got := asks(); got != want {
			t.Errorf("request %d: asks again: %t, want %t", i, got, want)
		}
	}
	web.CloseClientConnections()
	if !asks() {
		t.Error("a new connection is not seen")
	}
}

// away is an API server that cannot be reached until a time.
type away struct {
	until time.Time
	tries int
}

func (a *away) RoundTrip(*http.Request) (*http.Response, error) {
	a.tries++
	if time.Now().Before(a.until) {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAWatchGoesOnSoonAfterTheServerIsBack(t *testing.T) {
	const outage = 10 * time.Minute
	cases := map[string]struct {
		method, query string
		patience      time.Duration // of the caller
		wantErr       bool
		wantLonger    time.Duration // than the outage, or than patience; at most
	}{
		"a watch":                   {method: http.MethodGet, query: "?watch=true", patience: time.Hour, wantLonger: 2 * watchRetry},
		"a watch that is given up":  {method: http.MethodGet, query: "?watch=true", patience: time.Minute, wantErr: true},
		"a request that can fail":   {method: http.MethodGet, patience: 0, wantErr: true},
		"a write with such a query": {method: http.MethodPost, query: "?watch=true", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := NewServer(ServerConfig{Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), max(tc.patience, time.Nanosecond))
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, tc.method, "http://api/jobs"+tc.query, nil)
				if err != nil {
					t.Fatal(err)
				}
				began, api := time.Now(), &away{until: time.Now().Add(outage)}
				resp, err := s.Transport(api).RoundTrip(r)
				if (err != nil) != tc.wantErr {
					t.Errorf("error %v, want one: %t", err, tc.wantErr)
				}
				if err == nil {
					_ = resp.Body.Close()
				}
				took := time.Since(began)
				if least := min(outage, tc.patience); took < least || took > least+tc.wantLonger {
					t.Errorf("took %s, want %s, and at most %s more", took, least, tc.wantLonger)
				}
				if most := 1 + int(took/watchRetry); api.tries > most {
					t.Errorf("%d tries, want at most %d", api.tries, most)
				}
			})
		})
	}
}

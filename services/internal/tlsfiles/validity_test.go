package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"jobpolicy.dev/services/internal/testenv"
)

func showing(from, until time.Duration) credentials.TransportCredentials {
	leaf := &x509.Certificate{NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until)}
	return &following{config: func() (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}}, nil
	}}
}

func TestWatchTellsOfTheCertificateInUse(t *testing.T) {
	none := &following{config: func() (*tls.Config, error) { return nil, errors.New("tls.crt is not there") }}
	cases := map[string]struct {
		creds    credentials.TransportCredentials
		wantErr  string
		wantNote string
		wantIdle bool
		wantIn   time.Duration // what the metric says, from now
	}{
		"plaintext":           {creds: insecure.NewCredentials(), wantIdle: true},
		"a client's none":     {creds: &following{config: func() (*tls.Config, error) { return &tls.Config{}, nil }}, wantIdle: true},
		"not there yet":       {creds: none, wantErr: "tls.crt is not there"},
		"valid for long":      {creds: showing(-time.Hour, 100*time.Hour), wantNote: "expires at", wantIn: 100 * time.Hour},
		"should be renewed":   {creds: showing(-100*time.Hour, time.Hour), wantNote: "warning", wantIn: time.Hour},
		"not valid yet":       {creds: showing(time.Hour, 100*time.Hour), wantErr: "valid only from", wantNote: "expires at", wantIn: 100 * time.Hour},
		"expired an hour ago": {creds: showing(-100*time.Hour, -time.Hour), wantErr: "expired at", wantNote: "warning", wantIn: -time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := prometheus.NewRegistry()
			check, err := Watch(tc.creds, r)
			if err != nil {
				t.Fatal(err)
			}
			if _, idle := check.Idle(); idle != tc.wantIdle {
				t.Errorf("idle = %t, want %t", idle, tc.wantIdle)
			}
			if !tc.wantIdle {
				err = check.Run(t.Context())
			}
			testenv.WantError(t, err, tc.wantErr)
			if note := check.Note(); !strings.HasPrefix(note, tc.wantNote) {
				t.Errorf("note = %q, want %q", note, tc.wantNote)
			}
			got, err := testutil.GatherAndCount(r)
			if err != nil || got != 1 {
				t.Fatalf("%d metrics, %v", got, err)
			}
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			value := families[0].GetMetric()[0].GetGauge().GetValue()
			if tc.wantIn == 0 && value != 0 {
				t.Errorf("metric = %v, want 0", value)
			}
			if in := time.Until(time.Unix(int64(value), 0)); tc.wantIn != 0 && (in-tc.wantIn).Abs() > time.Hour/2 {
				t.Errorf("metric says in %s, want %s", in, tc.wantIn)
			}
		})
	}
}

package kubeclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestTheClockFollowsTheDateOfAnswers(t *testing.T) {
	behind := 90 * time.Second
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-behind).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	var clock Clock
	cfg := &rest.Config{Host: server.URL}
	clock.Watch(cfg)
	if got := clock.Now(); !got.IsZero() {
		t.Errorf("before any answer: %s, want the zero time", got)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := clock.Now()
	// The Date is cut to the second.
	if earliest, latest := before.Add(-behind-time.Second), time.Now().Add(-behind); got.Before(earliest) || got.After(latest) {
		t.Errorf("%s, want between %s and %s", got, earliest, latest)
	}
}

func TestAnAnswerWithoutDateChangesNothing(t *testing.T) {
	var clock Clock
	clock.record("", time.Now())
	if got := clock.Now(); !got.IsZero() {
		t.Errorf("%s, want the zero time", got)
	}
}

// The server's time follows from the monotonic clock, and not from this process's wall
// clock: whoever sets that between two answers does not change it.
func TestASetClockDoesNotChangeTheServersTime(t *testing.T) {
	var clock Clock
	cfg := &rest.Config{}
	clock.Watch(cfg)
	date := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	transport := cfg.WrapTransport(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Date": {date.Format(http.TimeFormat)}}}, nil
	}))
	if _, err := transport.RoundTrip(&http.Request{}); err != nil {
		t.Fatal(err)
	}
	if received := clock.last.Load().received.String(); !strings.Contains(received, "m=") {
		t.Errorf("%s has no monotonic reading", received)
	}
	if got := clock.Now(); got.Before(date) || strings.Contains(got.String(), "m=") {
		t.Errorf("%s, want %s and what has passed since, by no clock of this process", got, date)
	}
}

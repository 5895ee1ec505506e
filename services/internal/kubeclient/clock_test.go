package kubeclient

import (
	"net/http"
	"net/http/httptest"
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
	clock.hear("", time.Now())
	if got := clock.Now(); !got.IsZero() {
		t.Errorf("%s, want the zero time", got)
	}
}

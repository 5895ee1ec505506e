package policyserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

func TestAConnectionTooManyIsLoggedWithItsCaller(t *testing.T) {
	s := newSecured(t, testengine.Config{MaxConnectionsPerCaller: 1}, "callers: [{identity: 'cn:noisy', methods: ['*']}]")
	if err := decide(patient(t), s.as(t, "noisy")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := decide(patient(t), s.as(t, "noisy")); status.Code(err) != codes.Unavailable {
			t.Errorf("a second connection: %v, want UNAVAILABLE", err)
		}
	}
	if n := s.Log.Count(`msg="connection refused" reason=too_many caller=dns:noisy client=127.0.0.1:`); n != 1 {
		t.Errorf("logged %d times, want once within a period:\n%s", n, s.Log)
	}
}

// When there are as many connections as there may be, a caller that has few still gets one.
func TestACallerWithFewConnectionsTakesThePlaceOfOneWithMany(t *testing.T) {
	s := newSecured(t, testengine.Config{MaxConnectionsPerCaller: 3, MaxConnections: 3},
		"callers: [{identity: 'cn:noisy', methods: ['*']}, {identity: 'cn:good', methods: ['*']}]")
	noisy := s.as(t, "noisy")
	if err := decide(patient(t), noisy); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, noisy)
	for range 2 {
		if err := decide(patient(t), s.as(t, "noisy")); err != nil {
			t.Fatal(err)
		}
	}
	if err := decide(patient(t), s.as(t, "good")); err != nil {
		t.Errorf("another caller: %v", err)
	}
	if !noisy.WaitForStateChange(patient(t), connectivity.Ready) {
		t.Error("the oldest connection of the caller that has most stays")
	}
	if s.Log.Count("reason=replaced caller=dns:noisy") != 1 {
		t.Errorf("the log lacks the connection that was closed:\n%s", s.Log)
	}
}

func usable(value int) string {
	return fmt.Sprintf(`
# HELP jobpolicy_engine_authorized_callers_usable Whether the list of authorized callers can be used as it stands in its file: 1, or 0 if the one before stays in use.
# TYPE jobpolicy_engine_authorized_callers_usable gauge
jobpolicy_engine_authorized_callers_usable %d
`, value)
}

// Nobody calls while the list changes.
func TestAListThatCannotBeReadIsNoticedWithoutACall(t *testing.T) {
	const list = "callers: [{identity: 'cn:a', methods: ['*']}]"
	s := newSecured(t, testengine.Config{}, list)
	check := s.AuthorizedCallers()
	assert := func(value int, note string) {
		t.Helper()
		testenv.Eventually(t, func() error {
			if got := check.Note(); !strings.Contains(got, note) {
				return fmt.Errorf("/readyz says %q, want %q", got, note)
			}
			return testutil.GatherAndCompare(s.Registry, strings.NewReader(usable(value)), "jobpolicy_engine_authorized_callers_usable")
		})
		if err := check.Run(t.Context()); err != nil {
			t.Errorf("/readyz fails: %v", err)
		}
	}
	assert(1, "1 listed")
	s.allow(t, "callers: none of your business")
	assert(0, "warning: since ")
	if s.Log.Count("list of authorized callers not usable") != 1 {
		t.Errorf("log:\n%s", s.Log)
	}
	s.allow(t, list)
	assert(1, "1 listed")
}

func TestWithoutAListNothingIsSaidOfIt(t *testing.T) {
	s := testengine.Start(t, testengine.Config{})
	if why, idle := s.AuthorizedCallers().Idle(); !idle {
		t.Errorf("the check applies: %s", why)
	}
	if n, err := testutil.GatherAndCount(s.Registry, "jobpolicy_engine_authorized_callers_usable"); n != 0 || err != nil {
		t.Errorf("%d series, error %v; want none", n, err)
	}
}

// Where no list names the callers, those beyond the first hundred are "other" in metrics.
func TestCallersHaveABoundedNumberOfNamesInMetrics(t *testing.T) {
	s := newSecured(t, testengine.Config{}, "")
	for i := range 102 {
		if err := decide(patient(t), s.as(t, fmt.Sprintf("caller-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func() error {
		series, others := testenv.Metrics(t, s.Registry, "jobpolicy_engine_caller_calls_total"), 0.0
		for _, m := range series {
			if m.Labels["caller"] == "other" {
				others = m.GetCounter().GetValue()
			}
		}
		if len(series) != 101 || others != 2 {
			return fmt.Errorf("%d callers in metrics, of which \"other\" made %v calls; want 101 and 2", len(series), others)
		}
		return nil
	})
}

// A slow call in the histogram leads to its trace.
func TestHandlingSecondsHaveExemplars(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	s := testengine.Start(t, testengine.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
	if err := decide(patient(t), s.Dial(t)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() error {
		for _, m := range testenv.Metrics(t, s.Registry, "grpc_server_handling_seconds") {
			if got := m.Exemplars(); len(got) > 0 {
				if want := "trace_id=" + spans.Ended()[0].SpanContext().TraceID().String(); got[0] != want {
					t.Errorf("exemplar %s, want %s", got[0], want)
				}
				return nil
			}
		}
		return fmt.Errorf("no bucket of grpc_server_handling_seconds has an exemplar")
	})
}

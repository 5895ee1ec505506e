package telemetry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/services/internal/telemetry"
	"jobpolicy.dev/services/internal/testenv"
)

var service = telemetry.Service{Name: "jobpolicy-test", Version: "v0"}

// setenv clears the variables that matter, and sets some.
func setenv(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	} {
		t.Setenv(name, vars[name])
	}
}

// startSpan starts tracing, and a span.
func startSpan(t *testing.T) (*telemetry.Tracing, trace.Span) {
	t.Helper()
	tracing, err := telemetry.StartTracing(t.Context(), service, (&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.Provider.Tracer("test").Start(t.Context(), "span")
	return tracing, span
}

// traceOnce makes one span and shuts down.
func traceOnce(t *testing.T) {
	t.Helper()
	tracing, span := startSpan(t)
	span.End()
	if err := tracing.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTracesGoOutOverGRPC(t *testing.T) {
	collector := testenv.NewCollector(t)
	for name, want := range map[string]string{"": "jobpolicy-test", "renamed": "renamed"} {
		setenv(t, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": collector.Endpoint,
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
			"OTEL_SERVICE_NAME":           name,
		})
		before := len(collector.Spans())
		traceOnce(t)
		spans := collector.Spans()[before:]
		if len(spans) != 1 || spans[0].GetName() != "span" || spans[0].Service != want {
			t.Errorf("with OTEL_SERVICE_NAME=%q: received %v, want one span of %s", name, spans, want)
		}
	}
}

func TestTracesGoOutOverHTTP(t *testing.T) {
	var received atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req collectorv1.ExportTraceServiceRequest
		if err == nil && r.URL.Path == "/v1/traces" && proto.Unmarshal(body, &req) == nil {
			received.Add(int32(len(req.GetResourceSpans())))
		}
	}))
	defer collector.Close()
	for _, protocol := range []string{"", "http/protobuf"} {
		setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
		before := received.Load()
		traceOnce(t)
		if got := received.Load() - before; got != 1 {
			t.Errorf("with OTEL_EXPORTER_OTLP_PROTOCOL=%q: received %d times, want once", protocol, got)
		}
	}
}

func TestTracingIsOffUnlessAskedFor(t *testing.T) {
	cases := map[string]struct {
		vars map[string]string
		want bool
	}{
		"nothing is set":       {nil, false},
		"an endpoint is set":   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_BSP_EXPORT_TIMEOUT": "1"}, true},
		"the exporter is none": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false},
		"the SDK is disabled":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			setenv(t, tc.vars)
			_, span := startSpan(t)
			if got := span.IsRecording(); got != tc.want {
				t.Errorf("recording = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUnknownSettingsAreNamed(t *testing.T) {
	cases := map[string]map[string]string{
		"OTEL_TRACES_EXPORTER":        {"OTEL_TRACES_EXPORTER": "zipkin"},
		"OTEL_EXPORTER_OTLP_PROTOCOL": {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"},
	}
	for name, vars := range cases {
		t.Run(name, func(t *testing.T) {
			setenv(t, vars)
			_, err := telemetry.StartTracing(t.Context(), service, (&testenv.Log{}).Logger())
			testenv.WantError(t, err, name)
		})
	}
}

func TestCollectorThatIsAwayIsLoggedOnce(t *testing.T) {
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
	var log testenv.Log
	if _, err := telemetry.StartTracing(t.Context(), service, log.Logger()); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		otel.Handle(fmt.Errorf("read tcp 127.0.0.1:%d: %w", 40000+n, io.ErrUnexpectedEOF))
	}
	if got := log.Count("telemetry cannot be exported"); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, log.String())
	}
}

// Standard output may hold the decision log, which must stay readable.
func TestSpansOnTheConsoleGoToStandardError(t *testing.T) {
	setenv(t, map[string]string{"OTEL_TRACES_EXPORTER": "console"})
	stdout, stderr := redirect(t, &os.Stdout), redirect(t, &os.Stderr)
	traceOnce(t)
	if out, err := stdout(), stderr(); out != "" || !strings.Contains(err, `"Name":"span"`) {
		t.Errorf("standard output %q, standard error %q; want the span in the second", out, err)
	}
}

// redirect makes *stream a file until the test ends, and returns what reads it.
func redirect(t *testing.T, stream **os.File) (read func() string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	before := *stream
	*stream = file
	t.Cleanup(func() { *stream = before; _ = file.Close() })
	return func() string { return string(testenv.ReadFile(t, file.Name())) }
}

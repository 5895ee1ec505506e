package servicemain

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"jobpolicy.dev/services/internal/testenv"
)

func TestLinesLoggedWithAContextCarryItsIDs(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2},
	})
	ctx := trace.ContextWithSpanContext(t.Context(), span)
	ids := map[string]any{"trace_id": "00000000000000000000000000000001", "span_id": "0000000000000002"}
	cases := map[string]struct {
		log  func(*slog.Logger)
		want map[string]any
	}{
		"with a span":                          {log: func(l *slog.Logger) { l.InfoContext(ctx, "x") }, want: ids},
		"with a span, by a logger with fields": {log: func(l *slog.Logger) { l.With("a", 1).InfoContext(ctx, "x") }, want: ids},
		"without a span":                       {log: func(l *slog.Logger) { l.InfoContext(t.Context(), "x") }, want: map[string]any{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			o := &LogOptions{Format: "json", Level: "info"}
			tc.log(o.Logger(&out))
			line := map[string]any{}
			if err := json.Unmarshal([]byte(out.String()), &line); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			for _, other := range []string{"time", "level", "msg", "a"} {
				delete(line, other)
			}
			if diff := cmp.Diff(tc.want, line); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogOptionsAreCheckedByFlag(t *testing.T) {
	cases := map[string]struct {
		options LogOptions
		want    string // empty: valid
	}{
		"text, info":     {LogOptions{Format: "text", Level: "info"}, ""},
		"json, debug":    {LogOptions{Format: "json", Level: "debug"}, ""},
		"another format": {LogOptions{Format: "xml", Level: "info"}, "--log-format"},
		"another level":  {LogOptions{Format: "text", Level: "loud"}, "--log-level"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testenv.WantError(t, tc.options.Validate(), tc.want)
		})
	}
}

func TestLevelDropsLinesBelowIt(t *testing.T) {
	var out strings.Builder
	log := (&LogOptions{Format: "text", Level: "warn"}).Logger(&out)
	log.Info("quiet")
	log.Warn("loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "loud") {
		t.Errorf("logged %q, want loud only", got)
	}
}

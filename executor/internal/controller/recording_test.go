package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// records is a DecisionLog.
type records []*jobpolicyv1.DecisionRecord

func (r *records) Record(_ context.Context, record *jobpolicyv1.DecisionRecord) {
	*r = append(*r, record)
}

// lines says of each record what was asked, how it was answered, and what became of that.
func (r records) lines() []string {
	lines := []string{}
	for _, rec := range r {
		lines = append(lines, fmt.Sprintf("%s answered %t error %d %s %q", rec.GetJob().GetRequest().GetRequestId(),
			rec.GetJob().GetResponse() != nil, rec.GetError().GetCode(), rec.GetOutcome(), rec.GetFailure()))
	}
	return lines
}

func TestEveryExchangeHasARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, log := testConfig(), records{}
		cfg.DecisionLog, cfg.Workers = &log, 1
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
		away := &engine{err: status.Error(codes.Unavailable, "away")}
		var c *Controller
		ask := func(ctx context.Context, e *engine, id string) {
			_, _ = Ask(ctx, c, e.DecideJob, &jobpolicyv1.DecideJobRequest{RequestId: id}) // The record says it.
		}
		c, q := start(t, cfg, Options[string]{Reconcile: func(ctx context.Context, key string) (Result, error) {
			ctx = trace.ContextWithSpanContext(ctx, span)
			switch key {
			case "twice":
				ask(ctx, &engine{}, "incomplete")
				ask(ctx, &engine{}, "complete")
				RecordOutcome(ctx, nil)
			case "failed":
				ask(ctx, &engine{}, "failed")
				RecordOutcome(ctx, errors.New("quota"))
			case "away":
				ask(ctx, away, "away")
			case "silent":
				RecordOutcome(ctx, nil) // Nothing was asked.
			}
			return Result{}, nil
		}})
		for _, key := range []string{"twice", "failed", "away", "silent"} {
			q.Enqueue(key, "event", PriorityNormal)
			synctest.Wait()
		}
		want := []string{
			`incomplete answered true error 0 APPLY_OUTCOME_UNSPECIFIED ""`,
			`complete answered true error 0 APPLY_OUTCOME_APPLIED ""`,
			`failed answered true error 0 APPLY_OUTCOME_FAILED "quota"`,
			`away answered false error 14 APPLY_OUTCOME_UNSPECIFIED ""`,
		}
		if diff := cmp.Diff(want, log.lines()); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		for _, rec := range log {
			if trace.TraceID(rec.GetTraceId()) != span.TraceID() || trace.SpanID(rec.GetSpanId()) != span.SpanID() || rec.GetTime() == nil {
				t.Errorf("trace %x, span %x, time %v; want those of %v", rec.GetTraceId(), rec.GetSpanId(), rec.GetTime(), span)
			}
		}
	})
}

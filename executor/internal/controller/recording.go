package controller

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A DecisionLog takes what the engine was asked, what it answered, and what became of
// the answer.
type DecisionLog interface {
	// Record must not wait for anything, and must not change the record. ctx carries
	// the span of the reconcile.
	Record(ctx context.Context, record *jobpolicyv1.DecisionRecord)
}

// A recording collects the records of one reconcile. Only its goroutine uses it.
type recording struct {
	log     DecisionLog
	pending *jobpolicyv1.DecisionRecord
	ctx     context.Context // Of the pending record.
}

type recordingKey struct{}

// withRecording returns a context in which Ask makes records, and a function that must
// be called when the reconcile has ended.
func withRecording(ctx context.Context, log DecisionLog) (context.Context, func()) {
	if log == nil {
		return ctx, func() {}
	}
	r := &recording{log: log}
	return context.WithValue(ctx, recordingKey{}, r), r.flush
}

func recordingOf(ctx context.Context) *recording {
	r, _ := ctx.Value(recordingKey{}).(*recording)
	return r
}

// flush sends the last record. A record is kept until the next one begins or the reconcile
// ends, so that RecordOutcome can add its outcome.
func (r *recording) flush() {
	if r.pending != nil {
		r.log.Record(r.ctx, r.pending)
		r.pending = nil
	}
}

// recordExchange records a call of the engine. Calls of methods that decide nothing have
// no record.
func recordExchange[Q answer.Request, A answer.Decision](ctx context.Context, c *Controller, req Q, decision A, err error) {
	r := recordingOf(ctx)
	if r == nil {
		return
	}
	r.flush()
	record := &jobpolicyv1.DecisionRecord{Time: timestamppb.New(c.Now())}
	if err != nil {
		var none A
		decision, record.Error = none, status.Convert(err).Proto()
	}
	switch req := any(req).(type) {
	case *jobpolicyv1.DecideJobRequest:
		response, _ := any(decision).(*jobpolicyv1.DecideJobResponse)
		record.Exchange = &jobpolicyv1.DecisionRecord_Job{Job: &jobpolicyv1.JobExchange{Request: req, Response: response}}
	case *jobpolicyv1.DecideCronJobRequest:
		response, _ := any(decision).(*jobpolicyv1.DecideCronJobResponse)
		record.Exchange = &jobpolicyv1.DecisionRecord_CronJob{CronJob: &jobpolicyv1.CronJobExchange{Request: req, Response: response}}
	default:
		return
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		traceID, spanID := span.TraceID(), span.SpanID()
		record.TraceId, record.SpanId = traceID[:], spanID[:]
	}
	r.pending, r.ctx = record, ctx
}

// RecordOutcome records what became of the last answer that Ask returned. err is nil if all of it
// was done.
func RecordOutcome(ctx context.Context, err error) {
	r := recordingOf(ctx)
	if r == nil || r.pending == nil {
		return
	}
	if err != nil {
		r.pending.Outcome, r.pending.Failure = jobpolicyv1.ApplyOutcome_APPLY_OUTCOME_FAILED, err.Error()
		return
	}
	r.pending.Outcome = jobpolicyv1.ApplyOutcome_APPLY_OUTCOME_APPLIED
}

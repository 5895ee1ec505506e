package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jobpolicy.dev/executor/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/unknown"
)

var (
	// ErrEngine: there is no decision. The engine's absence is logged by Ask, not for
	// each key.
	ErrEngine = errors.New("no decision from the policy engine")
	// ErrRejected: there will be no decision before the object or the engine changes.
	ErrRejected = errors.New("the policy engine rejects the request")
	// ErrBadAnswer: the answer is not one that the contract allows.
	ErrBadAnswer = errors.New("answer of the policy engine breaks the contract")
)

// engineLogPeriod is how often it is logged that the engine still does not answer.
const engineLogPeriod = 30 * time.Second

// answers finds what is unknown in an answer, and could be a step that comes before
// others. Not looked at is what only explains, and follow_up, of which the contract says
// what to do with an unknown value.
var answers = unknown.NewFinder(
	[]protoreflect.FullName{
		"jobpolicy.v1.DecideJobResponse.explanation",
		"jobpolicy.v1.DecideJobResponse.follow_up",
		"jobpolicy.v1.DecideCronJobResponse.explanation",
		"jobpolicy.v1.DecideCronJobResponse.follow_up",
		"jobpolicy.v1.DeletePod.reason",
		"jobpolicy.v1.DeleteJob.reason",
		"jobpolicy.v1.Verdict.rule",
	},
	&jobpolicyv1.DecideJobResponse{}, &jobpolicyv1.DecideCronJobResponse{},
)

// A Request is a message to the engine.
type Request interface{ GetRequestId() string }

// A Response is the engine's answer.
type Response interface {
	proto.Message
	GetRequestId() string
	GetDisposition() jobpolicyv1.Disposition
}

// Ask calls the engine, for at most Config.DecisionTimeout, and checks that the
// answer belongs to the request. Its errors are ErrEngine, ErrRejected or
// ErrBadAnswer; the gRPC status of a failed call can be read with status.Code. When
// the engine answers again after it was away, the keys that back off because of that
// are reconciled at once.
func Ask[Q Request, A Response](ctx context.Context, c *Controller, decide func(context.Context, Q) (A, error), req Q) (_ A, err error) {
	ctx, end := c.Span(ctx, telemetry.SpanDecisionRequested, telemetry.AttrRequestID.String(req.GetRequestId()))
	defer func() { end(err) }()
	timed, cancel := context.WithTimeout(ctx, c.DecisionTimeout)
	defer cancel()
	var none A
	d, err := decide(timed, req)
	recordExchange(ctx, c, req, d, err)
	if err != nil {
		return none, c.engineFailed(ctx, err)
	}
	c.engineAnswered(ctx)
	switch disposition := d.GetDisposition(); {
	case d.GetRequestId() != req.GetRequestId():
		return none, fmt.Errorf("asked %q, got the answer to %q: %w", req.GetRequestId(), d.GetRequestId(), ErrBadAnswer)
	case disposition == jobpolicyv1.Disposition_DISPOSITION_UNSPECIFIED || jobpolicyv1.Disposition_name[int32(disposition)] == "":
		return none, fmt.Errorf("disposition %v is unknown: %w", disposition, ErrBadAnswer)
	}
	if found := answers.Find(d); found != nil {
		return none, fmt.Errorf("%s %s: %w", found.Path, found.What, ErrBadAnswer)
	}
	return d, nil
}

func (c *Controller) engineFailed(ctx context.Context, err error) error {
	c.Metrics.EngineFailed(err)
	switch status.Code(err) {
	case codes.InvalidArgument, codes.Unimplemented:
		c.engineAnswered(ctx)
		return fmt.Errorf("%w: %w", ErrRejected, err)
	case codes.Canceled:
	default:
		c.engine.failed(ctx, c.Logger.With(c.attr()), err)
	}
	return fmt.Errorf("%w: %w", ErrEngine, err)
}

func (c *Controller) engineAnswered(ctx context.Context) {
	if !c.engine.answered(ctx, c.Logger.With(c.attr())) {
		return
	}
	for _, q := range c.queues {
		q.engineIsBack()
	}
}

// Rejection is what the engine says about a request that it rejects, and "" if err
// is another error.
func Rejection(err error) string {
	call, ok := errors.AsType[rpcError](err)
	if !ok || !errors.Is(err, ErrRejected) {
		return ""
	}
	return call.GRPCStatus().Message()
}

// An rpcError is an error of a call.
type rpcError interface {
	error
	GRPCStatus() *status.Status
}

// engineHealth turns many failed calls into few log lines.
type engineHealth struct {
	mu     sync.Mutex
	down   bool
	calls  int
	logged time.Time
}

func (h *engineHealth) failed(ctx context.Context, log *slog.Logger, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = true
	h.calls++
	if time.Since(h.logged) < engineLogPeriod {
		return
	}
	h.logged = time.Now()
	log.ErrorContext(ctx, "policy engine does not answer", slog.Int("failedCalls", h.calls), slog.Any("error", err))
}

// answered reports whether the engine was away before.
func (h *engineHealth) answered(ctx context.Context, log *slog.Logger) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.down {
		return false
	}
	log.InfoContext(ctx, "policy engine answers again", slog.Int("failedCalls", h.calls))
	h.down, h.calls, h.logged = false, 0, time.Time{}
	return true
}

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

	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/proto/answer"
)

var (
	// ErrEngine: there is no decision, because the call of the engine failed. Ask logs that
	// for all keys together, not for each key.
	ErrEngine = errors.New("no decision from the policy engine")
	// ErrRejected: there will be no decision before the object or the engine changes.
	ErrRejected = errors.New("the policy engine rejects the request")
	// ErrBadAnswer: the answer is not one that the contract allows.
	ErrBadAnswer = errors.New("answer of the policy engine breaks the contract")
)

// EventPolicyRejected is the reason of the event on an object that the engine will not
// decide on.
const EventPolicyRejected = "PolicyRejected"

// engineLogPeriod is how often it is logged that the engine still does not answer.
const engineLogPeriod = 30 * time.Second

// Ask calls decide, a method of the Decider, for at most Config.DecisionTimeout, and checks that the
// answer belongs to the request. Its errors are ErrEngine, ErrRejected or
// ErrBadAnswer; the gRPC status of a failed call can be read with status.Code. When
// the engine answers again after it was away, the keys that back off because of that
// are reconciled at once.
func Ask[Q answer.Request, A answer.Decision](ctx context.Context, c *Controller, decide func(context.Context, Q) (A, error), req Q) (_ A, err error) {
	ctx, end := c.Span(ctx, telemetry.SpanDecisionRequested, telemetry.AttrRequestID.String(req.GetRequestId()))
	defer func() { end(err) }()
	d, err := call(ctx, c, decide, req)
	recordExchange(ctx, c, req, d, err)
	if err != nil {
		var none A
		return none, c.engineFailed(ctx, err)
	}
	c.engineAnswered(ctx)
	return checked(req, d)
}

// Try is Ask for an answer that nobody carries out. It makes no span, metric, log line or
// decision record, and enqueues no keys.
func Try[Q answer.Request, A answer.Decision](ctx context.Context, c *Controller, decide func(context.Context, Q) (A, error), req Q) (A, error) {
	d, err := call(ctx, c, decide, req)
	if err != nil {
		var none A
		return none, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return checked(req, d)
}

func call[Q answer.Request, A answer.Decision](ctx context.Context, c *Controller, decide func(context.Context, Q) (A, error), req Q) (A, error) {
	timed, cancel := context.WithTimeout(ctx, c.DecisionTimeout)
	defer cancel()
	return decide(timed, req)
}

// checked returns the answer if it belongs to the request and all of it is known.
func checked[Q answer.Request, A answer.Decision](req Q, d A) (A, error) {
	if err := answer.Check(req, d); err != nil {
		var none A
		return none, fmt.Errorf("%w: %w", err, ErrBadAnswer)
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

// Rejection returns what the engine says about a request that it rejects; "" if err is
// another error.
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
	calls  int // that failed, since the last answer
	logged time.Time
}

func (h *engineHealth) failed(ctx context.Context, log *slog.Logger, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
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
	if h.calls == 0 {
		return false
	}
	log.InfoContext(ctx, "policy engine answers again", slog.Int("failedCalls", h.calls))
	h.calls, h.logged = 0, time.Time{}
	return true
}

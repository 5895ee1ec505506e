package world

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// A decider is the engine as one executor reaches it. Requests and answers are encoded
// and decoded, so that the other side gets only what the contract carries.
type decider struct{ *link }

// DecideJob implements executor.Decider.
func (d decider) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	d.saw(req)
	resp := &jobpolicyv1.DecideJobResponse{}
	about, err := wire.UIDString(req.GetJob().GetUid())
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	expiring := strings.Contains(req.GetRequestId(), "-ttl-") // A question about a finished Job concerns only this.
	if !expiring {
		d.asked(d.by, about, time.Now())
	}
	r, f, err := d.ask(ctx, "job "+string(req.GetJob().GetUid())+req.GetRequestId(), req, &jobpolicyv1.DecideJobRequest{}, resp, func(m proto.Message, earlier bool) (proto.Message, error) {
		received := m.(*jobpolicyv1.DecideJobRequest)
		if earlier {
			if err := asEarlier(received); err != nil {
				return nil, err
			}
		}
		return decideJob(received)
	})
	if err != nil {
		return nil, err
	}
	if f == engineGarbled {
		garble(r, resp, expiring)
		if !expiring {
			d.garbled(d.by, about, time.Now())
		}
	}
	if d.telling() {
		d.note("engine", fmt.Sprintf("to %s on %s: %s", d.by, req.GetJob().GetName(), resp.GetExplanation().GetSummary()))
	}
	return resp, nil
}

// DecideCronJob implements executor.Decider.
func (d decider) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	resp := &jobpolicyv1.DecideCronJobResponse{}
	r, f, err := d.ask(ctx, "cron job "+string(req.GetCronJob().GetUid())+req.GetRequestId(), req, &jobpolicyv1.DecideCronJobRequest{}, resp, func(m proto.Message, earlier bool) (proto.Message, error) {
		if earlier {
			return nil, &engine.UnsupportedError{Field: "cron_job", Description: "are unknown to this engine"}
		}
		return decideCronJob(m.(*jobpolicyv1.DecideCronJobRequest))
	})
	if err != nil {
		return nil, err
	}
	if f == engineGarbled {
		cronGarblings[r.IntN(len(cronGarblings))](resp)
	}
	return resp, nil
}

// ask sends the question and receives the answer. The fault that it returns changes how
// the engine understands the question.
func (d decider) ask(ctx context.Context, key string, req, received, resp proto.Message, decide func(m proto.Message, earlier bool) (proto.Message, error)) (*request, faultKind, error) {
	sent, err := proto.Marshal(req)
	if err != nil {
		return nil, "", status.Error(codes.Internal, err.Error())
	}
	d.strain()
	r := d.question(ctx, key)
	f, err := d.trouble(ctx, r, len(sent))
	if err != nil {
		return nil, f, err
	}
	if err := d.wait(ctx, r.draw(span{50 * time.Microsecond, 2 * time.Millisecond})); err != nil {
		return nil, f, err
	}
	if err := proto.Unmarshal(sent, received); err != nil {
		return nil, f, status.Error(codes.Internal, err.Error())
	}
	answer, err := decide(received, f == engineEarlier)
	if err != nil {
		return nil, f, statusOf(err)
	}
	data, err := proto.Marshal(answer)
	if err != nil {
		return nil, f, status.Error(codes.Internal, err.Error())
	}
	if len(sent)%askedTwice == 0 && f != engineEarlier {
		again, err := decide(received, false)
		if err != nil || !proto.Equal(again, answer) {
			d.broken("I7", fmt.Sprintf("the same question got two answers: %v, and %v (%v); the question: %v", answer, again, err, received))
		}
	}
	d.judgeRequeue(received, answer)
	if f != engineEarlier {
		d.used(received, answer)
	}
	if at := laterThanTheCalendar(answer.ProtoReflect()); at != nil {
		d.broken("I11", fmt.Sprintf("an answer names the time %s, and no timestamp is later than the year 9999", at.AsTime()))
	}
	return r, f, proto.Unmarshal(data, resp)
}

// askedTwice: one in so many questions is asked a second time.
const askedTwice = 16

// judgeRequeue: the engine never asks to be asked again at a time that is not in the future.
func (d decider) judgeRequeue(question, answer proto.Message) {
	asked, ok := question.(interface{ GetNow() *timestamppb.Timestamp })
	answered, is := answer.(interface{ GetRequeueTime() *timestamppb.Timestamp })
	if !ok || !is {
		d.broken("I11", fmt.Sprintf("%T has no time, or %T no requeue time", question, answer))
		return
	}
	if at := answered.GetRequeueTime(); at != nil && !at.AsTime().After(asked.GetNow().AsTime()) {
		d.broken("I11", fmt.Sprintf("asked at %s, the engine wants to be asked again at %s", asked.GetNow().AsTime(), at.AsTime()))
	}
}

// laterThanTheCalendar is a time in a message that no timestamp may hold; nil if there is none.
func laterThanTheCalendar(m protoreflect.Message) (wrong *timestamppb.Timestamp) {
	if at, ok := m.Interface().(*timestamppb.Timestamp); ok {
		if at.IsValid() {
			return nil
		}
		return at
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range v.List().Len() {
				if wrong == nil {
					wrong = laterThanTheCalendar(v.List().Get(i).Message())
				}
			}
		default:
			wrong = laterThanTheCalendar(v.Message())
		}
		return wrong == nil
	})
	return wrong
}

// saw records which optional parts of a request were used.
func (d decider) saw(req *jobpolicyv1.DecideJobRequest) {
	u := req.GetUnlistedPods()
	perIndex := req.GetSpec().BackoffLimitPerIndex != nil
	d.mu.Lock()
	defer d.mu.Unlock()
	for what, is := range map[string]bool{
		"unlisted pods":                      u != nil,
		"unlisted successes":                 u.GetSucceeded() > 0,
		"unlisted failures":                  u.GetFailed() > 0,
		"unlisted failures, limits by index": u.GetFailed() > 0 && perIndex,
		"creations in flight":                req.GetInFlight().GetCreates() > 0,
	} {
		d.reached[what] = d.reached[what] || is
	}
}

// question is the request as the network sees it.
func (d decider) question(ctx context.Context, key string) *request {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.by + key)) // A hash takes everything.
	sum := h.Sum64()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent[sum]++
	return &request{
		Rand: rand.New(rand.NewPCG(d.seed^sum, d.sent[sum])), by: d.by, resource: "engine",
		Request: (&http.Request{}).WithContext(ctx),
	}
}

// overloaded is the error of an engine that has too much to do.
func overloaded() error {
	st, err := status.New(codes.ResourceExhausted, "drawn").WithDetails(&errdetails.ErrorInfo{
		Domain: jobpolicyv1grpc.ErrorDomain, Reason: jobpolicyv1grpc.ReasonName(jobpolicyv1.ErrorReason_ERROR_REASON_OVERLOADED),
	})
	if err != nil {
		panic(err) // cannot be: the detail is valid
	}
	return st.Err()
}

// trouble is what the engine answers while a fault is active; it may not answer at all.
func (d decider) trouble(ctx context.Context, r *request, size int) (faultKind, error) {
	large := size > d.plan.executor.largeRequest
	f := d.fault(r, func(k faultKind) bool { return k.ofEngine() && (k != engineNarrow || large) })
	if f == nil {
		return "", nil
	}
	d.note(d.by, string(f.kind))
	switch f.kind {
	case engineAway:
		return f.kind, status.Error(codes.Unavailable, "drawn")
	case engineBusy:
		return f.kind, overloaded()
	case engineNarrow: // by a proxy, which gives no reason
		return f.kind, status.Error(codes.ResourceExhausted, "drawn")
	case engineBroken:
		return f.kind, status.Error(codes.Internal, "drawn")
	case engineHangs:
		return f.kind, d.wait(ctx, time.Hour)
	case engineSlow:
		return f.kind, d.wait(ctx, r.draw(f.delay))
	}
	return f.kind, nil
}

// wait does the same as travel, and returns gRPC's errors.
func (d decider) wait(ctx context.Context, t time.Duration) error {
	err := d.travel(ctx, t)
	if errors.Is(err, errCut) {
		return status.Error(codes.Unavailable, err.Error())
	}
	if err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}

// toStatus maps what the engine returns to the code that the contract lists.
func toStatus(err error) error {
	if _, ok := errors.AsType[*engine.InvalidRequestError](err); ok {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if _, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		return status.Error(codes.Unimplemented, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

package fakes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Script is an engine that answers with functions and records what it is asked. Q and A
// are the request and the answer of DecideJob, or those of DecideCronJob. An answer that names
// no request answers the one that was asked.
type Script[Q interface{ GetRequestId() string }, A proto.Message] struct {
	// Answers answer one after the other, one request each.
	Answers []func(Q) (A, error)
	// Otherwise answers all other requests. By default everything is settled.
	Otherwise func(Q) (A, error)

	mu    sync.Mutex // Held by each of Answers.
	asked []Q
}

// DecideJob implements controller.Decider, for a Script about Jobs.
func (s *Script[Q, A]) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	answer, err := s.decide(any(req).(Q))
	return any(answer).(*jobpolicyv1.DecideJobResponse), err
}

// DecideCronJob implements controller.Decider, for a Script about CronJobs.
func (s *Script[Q, A]) DecideCronJob(_ context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	answer, err := s.decide(any(req).(Q))
	return any(answer).(*jobpolicyv1.DecideCronJobResponse), err
}

// Requests returns what was asked so far, in order.
func (s *Script[Q, A]) Requests() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Await waits for the n-th request, and returns it.
func (s *Script[Q, A]) Await(t testing.TB, n int) Q {
	t.Helper()
	Eventually(t, fmt.Sprintf("request %d", n), func() bool { return len(s.Requests()) >= n })
	return s.Requests()[n-1]
}

func (s *Script[Q, A]) decide(req Q) (A, error) {
	answer, scripted, err := s.next(req)
	switch {
	case scripted:
	case s.Otherwise != nil:
		answer, err = s.Otherwise(req)
	default:
		answer = settled[A]()
	}
	if !answer.ProtoReflect().IsValid() {
		return answer, err
	}
	answer = proto.CloneOf(answer)
	m := answer.ProtoReflect()
	if id := m.Descriptor().Fields().ByName("request_id"); !m.Has(id) {
		m.Set(id, protoreflect.ValueOfString(req.GetRequestId()))
	}
	return answer, err
}

// next records the request, and answers it if there is one of Answers left.
func (s *Script[Q, A]) next(req Q) (answer A, scripted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req)
	if len(s.Answers) == 0 {
		return answer, false, nil
	}
	next := s.Answers[0]
	s.Answers = s.Answers[1:]
	answer, err = next(req)
	return answer, true, err
}

// settled is the answer that nothing is to be done.
func settled[A proto.Message]() A {
	var none A
	m := none.ProtoReflect().New()
	m.Set(m.Descriptor().Fields().ByName("disposition"), protoreflect.ValueOfEnum(jobpolicyv1.Disposition_DISPOSITION_SETTLED.Number()))
	return m.Interface().(A)
}

package policyserver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// A call may end between its first header and the beginning of its handler. The client
// ends these, because it may not send so much.
func TestACallThatItsCallerEndsAtOnceIsNoDefect(t *testing.T) {
	s := testengine.Start(t, testengine.Config{})
	conn := s.Dial(t)
	for range 200 {
		_, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(patient(t), testenv.Snapshot(), grpc.MaxCallSendMsgSize(1))
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("a message that the client does not send: %v", err)
		}
	}
	s.Shutdown(patience) // waits for the calls
	if got := handled(t, s.Registry); got["DecideJob Internal"] != 0 || got["DecideJob Canceled"] == 0 {
		t.Errorf("%v calls ended as INTERNAL, %v as CANCELLED; want none, and some", got["DecideJob Internal"], got["DecideJob Canceled"])
	}
	if s.Log.Count("INTERNAL") != 0 {
		t.Errorf("log:\n%s", s.Log)
	}
}

// Every client watches health until its connection ends.
func TestAWatchOfHealthThatEndsIsNoRefusedCall(t *testing.T) {
	s := testengine.Start(t, testengine.Config{})
	ctx, cancel := context.WithCancel(patient(t))
	watch, err := healthv1.NewHealthClient(s.Dial(t)).Watch(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	assertHealth(t, watch, healthv1.HealthCheckResponse_SERVING)
	cancel()
	testenv.Eventually(t, func() error {
		if n := handled(t, s.Registry)["Watch Canceled"]; n != 1 {
			return fmt.Errorf("%v watches have ended, want 1", n)
		}
		return nil
	})
	s.Shutdown(patience)
	if n, err := testutil.GatherAndCount(s.Registry, "jobpolicy_engine_refused_calls_total"); n != 0 || err != nil {
		t.Errorf("%d series of refused calls, error %v; want none", n, err)
	}
}

package jobpolicyv1grpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestReasonName(t *testing.T) {
	for reason, want := range map[jobpolicyv1.ErrorReason]string{
		jobpolicyv1.ErrorReason_ERROR_REASON_OVERLOADED: "OVERLOADED",
		9999: "9999", // of a newer engine
	} {
		if got := ReasonName(reason); got != want {
			t.Errorf("%d: %q, want %q", reason, got, want)
		}
	}
}

func TestRetryDelay(t *testing.T) {
	overloaded, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		err   error
		delay time.Duration
		again bool
	}{
		"the engine says how long":      {overloaded.Err(), time.Minute, true},
		"the same, wrapped":             {fmt.Errorf("ask: %w", overloaded.Err()), time.Minute, true},
		"the engine is away":            {status.Error(codes.Unavailable, ""), awayDelay, true},
		"no answer in time":             {status.Error(codes.DeadlineExceeded, ""), awayDelay, true},
		"a request that is not valid":   {status.Error(codes.InvalidArgument, ""), 0, false},
		"a message above a limit":       {status.Error(codes.ResourceExhausted, ""), 0, false},
		"an error that is not a call's": {context.Canceled, 0, false},
	}
	for name, tc := range cases {
		if delay, again := RetryDelay(tc.err); delay != tc.delay || again != tc.again {
			t.Errorf("%s: got %s and %v, want %s and %v", name, delay, again, tc.delay, tc.again)
		}
	}
}

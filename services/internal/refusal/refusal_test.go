package refusal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
)

func TestProgramsReadTheReasonAndTheDelay(t *testing.T) {
	err := refusal.Refusal{
		Code: codes.ResourceExhausted, Reason: jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE, Text: "slow down",
		Metadata: map[string]string{"caller": "cn:" + strings.Repeat("x", 10<<20)},
	}.Err()
	want := []any{
		&errdetails.ErrorInfo{
			Reason: "CALLER_OVER_SHARE", Domain: "jobpolicy.dev",
			Metadata: map[string]string{"caller": "cn:" + strings.Repeat("x", 250) + "…"},
		},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)},
	}
	if diff := cmp.Diff(want, status.Convert(err).Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if got := jobpolicyv1grpc.ReasonOf(err); got != jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE {
		t.Errorf("ReasonOf() = %s", got)
	}
	for name, other := range map[string]error{
		"no status":                   errors.New("away"),
		"a status by others":          status.Error(codes.Unavailable, "away"),
		"an error of a later version": laterVersion(t),
	} {
		if got := jobpolicyv1grpc.ReasonOf(other); got != jobpolicyv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
			t.Errorf("ReasonOf() of %s = %s, want none", name, got)
		}
	}
}

func laterVersion(t *testing.T) error {
	t.Helper()
	st, err := status.New(codes.Internal, "").WithDetails(&errdetails.ErrorInfo{Domain: "jobpolicy.dev", Reason: "NOT_KNOWN_YET"})
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

func TestBadRequestNamesEachField(t *testing.T) {
	err := refusal.InvalidArgument(
		engine.FieldViolation{Field: "now", Description: "is required"},
		engine.FieldViolation{Field: "job.uid", Description: "not UTF-8: \xff"},
	)
	want := []any{&errdetails.ErrorInfo{Reason: "INVALID_REQUEST", Domain: "jobpolicy.dev"}, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
		{Field: "now", Description: "is required"},
		{Field: "job.uid", Description: "not UTF-8: "},
	}}}
	if diff := cmp.Diff(want, status.Convert(err).Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// Clients of other languages refuse more than 8 KiB of trailers, in which the
// details stand in base64, beside the text.
func TestStatusOfManyLongViolationsFitsIntoTrailers(t *testing.T) {
	violations := make([]engine.FieldViolation, 100)
	for i := range violations {
		violations[i] = engine.FieldViolation{Field: fmt.Sprintf("unaccounted_pods[%d].uid", i), Description: strings.Repeat("é", 5000)}
	}
	st := status.Convert(refusal.InvalidArgument(violations...))
	if size := len(st.Message()) + proto.Size(st.Proto())*4/3; size > 8<<10 {
		t.Errorf("status takes %d bytes, want at most 8 KiB", size)
	}
	if !strings.HasSuffix(st.Message(), "(and 99 more)") {
		t.Errorf("message does not say that there are 99 more: …%s", st.Message()[max(0, len(st.Message())-40):])
	}
	bad, ok := st.Details()[1].(*errdetails.BadRequest)
	if !ok || len(bad.GetFieldViolations()) == 0 || bad.GetFieldViolations()[0].GetField() != "unaccounted_pods[0].uid" {
		t.Errorf("details = %v, want a second one that is a BadRequest and begins with the first violation", st.Details())
	}
}

// What nobody gave a reason gets one before it leaves the service.
func TestNoErrorLeavesWithoutReason(t *testing.T) {
	ended := refusal.FromContext(context.Canceled)
	for name, tc := range map[string]struct{ err, want error }{
		"no error":                 {nil, nil},
		"with a reason":            {ended, ended},
		"of a context":             {fmt.Errorf("asking: %w", context.Canceled), refusal.FromContext(fmt.Errorf("asking: %w", context.Canceled))},
		"of somebody else":         {errors.New("secret"), refusal.ErrInternal},
		"a status without details": {status.Error(codes.NotFound, "secret"), refusal.ErrInternal},
		"of the transport":         {status.Error(codes.Unavailable, "away"), status.Error(codes.Unavailable, "away")},
	} {
		got, want := status.Convert(refusal.WithReason(tc.err)).Proto(), status.Convert(tc.want).Proto()
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

package jobpolicyv1grpc

import (
	"testing"

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

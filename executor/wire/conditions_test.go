package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func condition(kind batchv1.JobConditionType, status corev1.ConditionStatus, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: kind, Status: status, Message: message}
}

// Others may add conditions to a Job's status. Conditions that the engine does not write are
// not sent to it and stay in the status.
func TestConditionsOfOthersAreNotSentAndNotLost(t *testing.T) {
	var many []batchv1.JobCondition
	for n := range 200 {
		many = append(many, condition(batchv1.JobConditionType(fmt.Sprintf("example.com/%d", n)), "Odd", strings.Repeat("m", 40000)))
	}
	suspended, resumed := condition(batchv1.JobSuspended, corev1.ConditionTrue, "a"), condition(batchv1.JobSuspended, corev1.ConditionFalse, "b")
	target := condition(batchv1.JobFailureTarget, corev1.ConditionTrue, "c")
	other := condition("example.com/Other", corev1.ConditionTrue, "d")
	type list = []batchv1.JobCondition
	cases := map[string]struct {
		had, wantSent, next, wantWritten list
	}{
		"more than the contract takes": {
			had: append(list{suspended}, many...), wantSent: list{suspended},
			next: list{resumed}, wantWritten: append(list{resumed}, many...),
		},
		"a new one comes last": {
			had: list{other, suspended}, wantSent: list{suspended},
			next: list{suspended, target}, wantWritten: list{other, suspended, target},
		},
		"without a type, and twice the same": {
			had: list{{}, other, other}, next: list{target}, wantWritten: list{{}, other, other, target},
		},
		"of several of one type, one that is true": {
			had: list{resumed, suspended, resumed, other}, wantSent: list{suspended},
			next: list{suspended}, wantWritten: list{suspended, other},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent, err := JobStatus(&batchv1.JobStatus{Conditions: tc.had})
			if err != nil {
				t.Fatal(err)
			}
			var got list
			for _, m := range sent.GetConditions() {
				got = append(got, apiCondition(m))
			}
			if diff := cmp.Diff(tc.wantSent, got); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			next := batchv1.JobStatus{Conditions: tc.next}
			keepUndecided(&next, &batchv1.JobStatus{Conditions: tc.had})
			if diff := cmp.Diff(tc.wantWritten, next.Conditions); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextsOfConditionsKeepWithinTheContract(t *testing.T) {
	c := batchv1.JobCondition{Type: batchv1.JobSuspended, Reason: strings.Repeat("r", 5000), Message: strings.Repeat("m", 50000) + "\xff"}
	m := conditionMessage(&c)
	if r, n := len(m.GetReason()), len(m.GetMessage()); r != MaxReasonBytes || n != MaxMessageBytes {
		t.Errorf("a reason of %d bytes and a message of %d, want %d and %d", r, n, MaxReasonBytes, MaxMessageBytes)
	}
}

// The API server refuses to change the start time of a Job that runs, whatever
// it is.
func TestAStartTimeThatNoMessageCanHoldStays(t *testing.T) {
	began := metav1.NewTime(time.Date(0, 5, 6, 7, 8, 9, 0, time.UTC))
	had := batchv1.JobStatus{StartTime: &began}
	sent, err := JobStatus(&had)
	if err != nil {
		t.Fatal(err)
	}
	if !sent.GetStartTime().IsValid() {
		t.Errorf("the start time %v is not valid", sent.GetStartTime())
	}
	cases := map[string]struct {
		decided *jobpolicyv1.JobStatus
		want    *metav1.Time
	}{
		"kept":    {&jobpolicyv1.JobStatus{StartTime: sent.GetStartTime()}, &began},
		"cleared": {&jobpolicyv1.JobStatus{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			next, err := APIStatus(tc.decided)
			if err != nil {
				t.Fatal(err)
			}
			keepUndecided(&next, &had)
			if diff := cmp.Diff(tc.want, next.StartTime); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package answer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestDecide(t *testing.T) {
	const (
		apply      = jobpolicyv1.Disposition_DISPOSITION_APPLY
		settled    = jobpolicyv1.Disposition_DISPOSITION_SETTLED
		incomplete = jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
	)
	cases := map[string]struct {
		answers []jobpolicyv1.Disposition
		wantErr string
	}{
		"a decision":                   {answers: []jobpolicyv1.Disposition{apply}},
		"nothing to do":                {answers: []jobpolicyv1.Disposition{settled}},
		"the active pods are wanted":   {answers: []jobpolicyv1.Disposition{incomplete, apply}},
		"they are wanted again":        {answers: []jobpolicyv1.Disposition{incomplete, incomplete}, wantErr: "asked for again"},
		"something that nobody knows":  {answers: []jobpolicyv1.Disposition{99}, wantErr: "unknown"},
		"the engine does not answer":   {answers: nil, wantErr: "no answer"},
		"it asks, and then says wrong": {answers: []jobpolicyv1.Disposition{incomplete, 99}, wantErr: "unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []bool
			ids := map[string]bool{}
			ask := func(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
				ids[req.GetRequestId()] = true
				if req.GetNow() == nil || len(tc.answers) == 0 {
					return nil, errors.New("no answer")
				}
				return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: tc.answers[len(asked)-1]}, nil
			}
			_, err := Decide(t.Context(), ask, func(activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
				asked = append(asked, activePods)
				return &jobpolicyv1.DecideJobRequest{}, nil
			})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			if len(ids) != len(asked) || asked[len(asked)-1] != (len(asked) == 2) {
				t.Errorf("asked with active pods: %t, by %d ids", asked, len(ids))
			}
		})
	}
}

func TestDecideStopsAtARequestThatCannotBeMade(t *testing.T) {
	want := errors.New("on purpose")
	_, err := Decide(t.Context(), nil, func(bool) (*jobpolicyv1.DecideJobRequest, error) { return nil, want })
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestADeferredStepIsRefused(t *testing.T) {
	now := time.Unix(1000, 0)
	decisions := map[jobpolicyv1.Step]*jobpolicyv1.DecideJobResponse{
		jobpolicyv1.Step_STEP_CREATE_PODS: {Create: &jobpolicyv1.CreatePods{Count: 1}},
		jobpolicyv1.Step_STEP_DELETE_PODS: {Delete: []*jobpolicyv1.DeletePod{{}}},
	}
	for step, decision := range decisions {
		decision.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		for until, refused := range map[time.Time]bool{now.Add(time.Second): true, now: false} {
			req := &jobpolicyv1.DecideJobRequest{
				Now: timestamppb.New(now), Deferrals: []*jobpolicyv1.Deferral{{Step: step, Until: timestamppb.New(until)}},
			}
			if err := Check(req, decision); (err != nil) != refused {
				t.Errorf("%s until %s: error %v", step, until, err)
			}
		}
	}
}

func TestNewPods(t *testing.T) {
	if n := len(NewPods(&jobpolicyv1.CreatePods{Count: 3})) + len(NewPods(nil)); n != 3 {
		t.Errorf("%d pods, want 3", n)
	}
	if pods := NewPods(&jobpolicyv1.CreatePods{Count: 1, Indexes: Indexes(math.MaxInt32)}); len(pods) != 1 || *pods[0].Index != math.MaxInt32 {
		t.Errorf("of the largest index: %+v", pods)
	}
	pods := NewPods(&jobpolicyv1.CreatePods{
		Count: 3, Indexes: Indexes(1, 2, 5), FailureCounts: []*jobpolicyv1.IndexFailureCount{{Index: 2, Failures: 7, IgnoredFailures: 1}},
	})
	if len(pods) != 3 || *pods[0].Index != 1 || *pods[1].Index != 2 || *pods[2].Index != 5 || pods[1].Failures != 7 || pods[1].IgnoredFailures != 1 || pods[2].Failures != 0 {
		t.Errorf("pods %+v", pods)
	}
}

func TestIndexesJoinsNeighbours(t *testing.T) {
	set := Indexes(0, 1, 4, 6, 7, 8)
	if r := set.GetRanges(); len(r) != 3 || r[0].GetLast() != 1 || r[1].GetFirst() != 4 || r[2].GetLast() != 8 {
		t.Errorf("ranges %v", r)
	}
}

func TestFinished(t *testing.T) {
	status := &jobpolicyv1.JobStatus{Conditions: []*jobpolicyv1.JobCondition{
		{Type: "FailureTarget", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE},
		{Type: "Failed", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE},
	}}
	if c := Finished(status); c != nil {
		t.Errorf("finished by %v", c)
	}
	status.Conditions[1].Status = jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	if c := Finished(status); c.GetType() != "Failed" {
		t.Errorf("finished by %v, want Failed", c)
	}
}

func TestEarlier(t *testing.T) {
	none, one, two := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range [][3]time.Time{{none, none, none}, {none, one, one}, {one, none, one}, {one, two, one}, {two, one, one}} {
		if got := Earlier(tc[0], tc[1]); !got.Equal(tc[2]) {
			t.Errorf("of %v and %v: %v", tc[0], tc[1], got)
		}
	}
}

func TestFollowUp(t *testing.T) {
	const (
		none          = jobpolicyv1.FollowUp_FOLLOW_UP_NONE
		atOnce        = jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE
		whenConfirmed = jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED
	)
	for asked, want := range map[jobpolicyv1.FollowUp]jobpolicyv1.FollowUp{
		jobpolicyv1.FollowUp_FOLLOW_UP_UNSPECIFIED: none, none: none, atOnce: atOnce, whenConfirmed: whenConfirmed, 99: none,
	} {
		decision := &jobpolicyv1.DecideJobResponse{FollowUp: asked}
		if got := FollowUp(decision, true); got != want {
			t.Errorf("%v after a change: got %v, want %v", asked, got, want)
		}
		if got := FollowUp(decision, false); got != none {
			t.Errorf("%v after no change: got %v, want %v", asked, got, none)
		}
	}
}

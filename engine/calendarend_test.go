package engine_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/timestamp"
)

// No decision contains a time beyond what a Timestamp can express, and its requeue time is
// in the future (I11).
func TestNoTimeIsBehindTheEndOfTheCalendar(t *testing.T) {
	end := timestamppb.New(timestamp.Last)
	cases := map[string]struct {
		scene string
		edit  func(*request)
	}{
		"a failed pod": {
			scene: "job completions=3 backoffLimit=9\nstatus start=0s\nfinished a phase=Failed",
			edit:  func(r *request) { r.UnaccountedPods[0].FinishedTime = end },
		},
		"a failed index": {
			scene: "job mode=Indexed completions=3 backoffLimit=9 backoffLimitPerIndex=3\nstatus start=0s\nfinished a phase=Failed index=0",
			edit:  func(r *request) { r.UnaccountedPods[0].FinishedTime = end },
		},
		"a success of the future": {
			scene: "job completions=3 backoffLimit=9\nstatus start=0s\nfinished a phase=Failed\nfinished b phase=Succeeded",
			edit: func(r *request) {
				r.UnaccountedPods[0].FinishedTime, r.UnaccountedPods[1].FinishedTime = r.GetNow(), end
			},
		},
		"a deadline": {
			scene: "job completions=3 activeDeadlineSeconds=2147483647\nstatus start=0s\npods active=1",
			edit:  func(r *request) { r.Status.StartTime = r.GetNow() },
		},
		"a start that lies in the future": {
			scene: "job completions=3 activeDeadlineSeconds=0\nstatus start=0s\npods active=1",
			edit:  func(r *request) { r.Status.StartTime = end },
		},
		"a time to live": {
			scene: "job completions=3 ttlSecondsAfterFinished=2147483647\nstatus start=0s\ncondition Complete",
			edit:  func(r *request) { r.Status.Conditions[0].LastTransitionTime = r.GetNow() },
		},
		"a deferral": {
			scene: "job completions=3\nstatus start=0s\ndefercreations 0s",
			edit:  func(r *request) { deferUntil(r, createPods, end) },
		},
		"a pause of statuses": {
			scene: "job completions=9 parallelism=3\nstatus start=0s active=3 ready=3 succeeded=1\npods active=3\nquiet 0s",
			edit:  func(r *request) { deferUntil(r, writeRoutineStatus, end) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, early := range []time.Duration{0, 1, time.Second} {
				s := newScene()
				s.mustTell(t, tc.scene)
				s.req.Now = timestamppb.New(timestamp.Last.Add(-early))
				tc.edit(s.req)
				resp := decide(t, s.req)
				if broken := brokenPromises(s.req, resp); len(broken) > 0 {
					t.Errorf("%s early: %q", early, broken)
				}
			}
		})
	}
}

// A time.Duration holds 292 years at most.
func TestADeadlineOfCenturiesPasses(t *testing.T) {
	const year = 365 * 24 * 60 * 60
	s := newScene()
	s.mustTell(t, "job completions=3\nstatus start=0s\npods active=1")
	s.req.Spec.ActiveDeadlineSeconds = proto.Int64(300 * year)
	s.req.Now = timestamppb.New(epoch.AddDate(400, 0, 0))
	if resp := decide(t, s.req); !is(resp.GetStatus(), failureTarget) {
		t.Errorf("after 400 of 300 years the Job has not failed:\n%s", render(resp))
	}
}

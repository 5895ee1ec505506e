package engine_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// parallelism is that of the Job, which has 10,000 completions.
const parallelism = 1000

// finishing is a request in which so many of the Job's pods have finished.
func finishing(finished int, change func(*jobpolicyv1.DecideJobRequest)) *jobpolicyv1.DecideJobRequest {
	s := newScene()
	s.req.Now = at(10 * time.Second)
	s.req.Spec.Parallelism = parallelism
	s.req.Spec.Completions = proto.Int32(10_000)
	s.req.Status = &jobpolicyv1.JobStatus{StartTime: at(0), Active: parallelism}
	s.req.Pods = &jobpolicyv1.PodSummary{Active: int32(parallelism - finished)}
	deferUntil(s.req, writeRoutineStatus, at(10*time.Second))
	for n := range finished {
		s.req.UnaccountedPods = append(s.req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{
			Uid: uid(fmt.Sprintf("%03d", n)), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, FinishedTime: at(9 * time.Second),
		})
	}
	if change != nil {
		change(s.req)
	}
	return s.req
}

func TestManyFinishedPodsAreRecordedBeforeManyAreCreated(t *testing.T) {
	waitsForStatus := func(at *timestamppb.Timestamp) func(*jobpolicyv1.DecideJobRequest) {
		return func(r *jobpolicyv1.DecideJobRequest) { deferUntil(r, writeRoutineStatus, at) }
	}
	cases := map[string]struct {
		request        *jobpolicyv1.DecideJobRequest
		create, active int32
		releases       int
	}{
		"many of both": {request: finishing(300, nil), create: 0, active: 700, releases: 300},
		"few":          {request: finishing(99, nil), create: 99, active: parallelism, releases: 99},
		"the status has time": {
			request: finishing(300, waitsForStatus(at(11*time.Second))), create: 250, active: parallelism, releases: 0,
		},
		"more than a status may record": {
			request: finishing(600, waitsForStatus(at(11*time.Second))), create: 0, active: 400, releases: 500,
		},
		"the caller spaces no statuses": {request: finishing(300, waitsForStatus(nil)), create: 300, active: parallelism, releases: 300},
		"what records pods may go earlier": {
			request: finishing(300, func(r *jobpolicyv1.DecideJobRequest) {
				deferUntil(r, writeRoutineStatus, at(11*time.Second))
				deferUntil(r, recordPods, at(10*time.Second))
			}),
			create: 0, active: 700, releases: 300,
		},
		"pods that are recorded already": {
			request: finishing(300, func(r *jobpolicyv1.DecideJobRequest) {
				r.Status.Uncounted = &jobpolicyv1.UncountedTerminatedPods{}
				for _, pod := range r.GetUnaccountedPods() {
					r.Status.Uncounted.Succeeded = append(r.Status.Uncounted.Succeeded, pod.GetUid())
				}
			}),
			create: 250, active: 950, releases: 300,
		},
		"a status costs the same however many it records": {
			request: finishing(300, func(r *jobpolicyv1.DecideJobRequest) {
				deferUntil(r, writeRoutineStatus, at(11*time.Second))
				r.Spec.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
				r.Pods.ActiveIndexes = ranges(300, parallelism-1)
				for n, pod := range r.GetUnaccountedPods() {
					index := int32(n)
					pod.Index = &index
				}
			}),
			create: 300, active: parallelism, releases: 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := engine.DecideJob(tc.request)
			if err != nil {
				t.Fatal(err)
			}
			active := got.GetStatus().GetActive()
			if got.GetStatus() == nil {
				active = tc.request.GetStatus().GetActive()
			}
			if got.GetCreate().GetCount() != tc.create || active != tc.active || len(got.GetRelease()) != tc.releases {
				t.Errorf("creates %d, active %d, releases %d; want %d, %d, %d\n%s",
					got.GetCreate().GetCount(), active, len(got.GetRelease()), tc.create, tc.active, tc.releases, got.GetExplanation().GetSummary())
			}
			later := false
			for _, w := range got.GetExplanation().GetWaits() {
				later = later || w.GetStep() == createPods
			}
			if want := tc.create == 0; later != want {
				t.Errorf("creation waits: %v, want %v", later, want)
			}
		})
	}
}

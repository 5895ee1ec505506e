package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/jobstatus"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// validCheck has an update that the API server of v1.37 accepts.
func validCheck() *jobpolicyv1.CheckJobStatusRequest {
	return &jobpolicyv1.CheckJobStatusRequest{KubernetesMinor: 37, Updates: []*jobpolicyv1.JobStatusUpdate{{
		Spec:  &jobpolicyv1.JobSpec{Parallelism: 1},
		After: &jobpolicyv1.JobStatus{StartTime: at(0), Active: 1, Ready: proto.Int32(1)},
	}}}
}

func TestCheckJobStatus(t *testing.T) {
	type question = jobpolicyv1.CheckJobStatusRequest
	const ready = "status.ready"
	cases := map[string]struct {
		change func(*question)
		want   []*jobpolicyv1.StatusViolation
	}{
		"a status that is accepted": {change: func(*question) {}},
		"more ready than active": {
			change: func(r *question) { r.Updates[0].After.Ready = proto.Int32(2) },
			want:   []*jobpolicyv1.StatusViolation{{Rule: "MoreReadyThanActive", Field: ready, Description: "must not be above active (1), is 2"}},
		},
		"more ready than active, by an older server": {
			change: func(r *question) { r.Updates[0].After.Ready, r.KubernetesMinor = proto.Int32(2), 31 },
		},
		"more ready than active, by an older server with the gate": {
			change: func(r *question) {
				r.Updates[0].After.Ready, r.KubernetesMinor, r.JobManagedByGate = proto.Int32(2), 31, proto.Bool(true)
			},
			want: []*jobpolicyv1.StatusViolation{{Rule: "MoreReadyThanActive", Field: ready, Description: "must not be above active (1), is 2"}},
		},
		"more ready than active, by a server without the gate": {
			change: func(r *question) {
				r.Updates[0].After.Ready, r.KubernetesMinor, r.JobManagedByGate = proto.Int32(2), 34, proto.Bool(false)
			},
		},
		"as many conditions as DecideJob takes": {
			change: func(r *question) {
				for i := range 100 {
					r.Updates[0].After.Conditions = append(r.Updates[0].After.Conditions, &jobpolicyv1.JobCondition{Type: fmt.Sprint("Other", i), Status: 1})
				}
				r.Updates[0].After.Conditions = append(r.Updates[0].After.Conditions, &jobpolicyv1.JobCondition{Type: "Suspended", Status: 1})
			},
		},
		"what was wrong before": {
			change: func(r *question) {
				r.Updates[0].After.Ready = proto.Int32(2)
				r.Updates[0].Before = proto.CloneOf(r.Updates[0].After)
			},
		},
		"a negative count and ranges out of order are for the rules to refuse": {
			change: func(r *question) {
				r.Updates[0].Spec.CompletionMode, r.Updates[0].Spec.Completions = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED, proto.Int32(5)
				r.Updates[0].After.Failed = -1
				r.Updates[0].Before = &jobpolicyv1.JobStatus{Failed: -1}
				r.Updates[0].After.CompletedIndexes = ranges(3, 3, 1, 1)
			},
			want: []*jobpolicyv1.StatusViolation{
				{Rule: "NegativeCount", Field: "status.failed", Description: "must not be negative, is -1"},
				{Rule: "CompletedIndexesMalformed", Field: "status.completedIndexes", Description: "must be in ascending order: index 1 comes after 3"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := validCheck()
			tc.change(req)
			before := proto.CloneOf(req)
			got, err := engine.CheckJobStatus(req)
			if err != nil {
				t.Fatal(err)
			}
			want := &jobpolicyv1.CheckJobStatusResponse{Checks: []*jobpolicyv1.JobStatusCheck{{Violations: tc.want}}}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			if !proto.Equal(before, req) {
				t.Error("the request was changed")
			}
		})
	}
}

func TestCheckJobStatusRefusesBadRequests(t *testing.T) {
	type question = jobpolicyv1.CheckJobStatusRequest
	condition := func(c *jobpolicyv1.JobCondition) func(*question) {
		return func(r *question) { r.Updates[0].After.Conditions = []*jobpolicyv1.JobCondition{c} }
	}
	cases := map[string]struct {
		spoil func(*question)
		want  string
	}{
		"too many":          {spoil: func(r *question) { r.Updates = make([]*jobpolicyv1.JobStatusUpdate, 1001) }, want: "updates"},
		"no spec":           {spoil: func(r *question) { r.Updates[0].Spec = nil }, want: "updates[0].spec"},
		"no status":         {spoil: func(r *question) { r.Updates[0].After = nil }, want: "updates[0].after"},
		"no version":        {spoil: func(r *question) { r.KubernetesMinor = 0 }, want: "kubernetes_minor"},
		"a version too old": {spoil: func(r *question) { r.KubernetesMinor = jobstatus.OldestMinor - 1 }, want: "kubernetes_minor"},
		"a version to come": {spoil: func(r *question) { r.KubernetesMinor = jobstatus.NewestMinor + 1 }, want: "kubernetes_minor"},
		"a gate before time": {
			spoil: func(r *question) { r.KubernetesMinor, r.JobManagedByGate = 29, proto.Bool(true) },
			want:  "job_managed_by_gate",
		},
		"a gate locked":                    {spoil: func(r *question) { r.JobManagedByGate = proto.Bool(false) }, want: "job_managed_by_gate"},
		"negative completions in the spec": {spoil: func(r *question) { r.Updates[0].Spec.Completions = proto.Int32(-1) }, want: "updates[0].spec.completions"},
		"a time beyond the calendar":       {spoil: func(r *question) { r.Updates[0].After.CompletionTime = badTime() }, want: "updates[0].after.completion_time"},
		"such a time before":               {spoil: func(r *question) { r.Updates[0].Before = &jobpolicyv1.JobStatus{StartTime: badTime()} }, want: "updates[0].before.start_time"},
		"a condition that is neither true nor false": {
			spoil: condition(&jobpolicyv1.JobCondition{Type: "Complete"}),
			want:  "updates[0].after.conditions[0].status",
		},
		"a condition without type": {spoil: condition(&jobpolicyv1.JobCondition{Status: 1}), want: "updates[0].after.conditions[0].type"},
		"more conditions than there may be": {
			spoil: func(r *question) { r.Updates[0].After.Conditions = make([]*jobpolicyv1.JobCondition, 101) },
			want:  "updates[0].after.conditions",
		},
		"more uncounted pods than there may be": {
			spoil: func(r *question) {
				r.Updates[0].After.Uncounted = &jobpolicyv1.UncountedTerminatedPods{Failed: make([][]byte, 100_001)}
			},
			want: "updates[0].after.uncounted.failed",
		},
		"more ranges than there may be": {
			spoil: func(r *question) {
				r.Updates[0].After.CompletedIndexes = &jobpolicyv1.IndexSet{Ranges: make([]*jobpolicyv1.IndexRange, 200_001)}
			},
			want: "updates[0].after.completed_indexes.ranges",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := validCheck()
			tc.spoil(req)
			_, err := engine.CheckJobStatus(req)
			invalid, ok := errors.AsType[*engine.InvalidRequestError](err)
			if !ok || len(invalid.Violations) != 1 || invalid.Violations[0].Field != tc.want {
				t.Errorf("error = %v, want one violation, of %s", err, tc.want)
			}
		})
	}
}

func TestCheckJobStatusKnowsNoSpecOfANewerContract(t *testing.T) {
	req := validCheck()
	req.Updates[0].Spec.ProtoReflect().SetUnknown([]byte("\xfa\x7f\x01x")) // field 2047, one byte
	_, err := engine.CheckJobStatus(req)
	if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
		t.Errorf("error = %v, want *engine.UnsupportedError", err)
	}
}

// FuzzCheckJobStatus feeds bytes as they may arrive over the wire.
func FuzzCheckJobStatus(f *testing.F) {
	f.Add([]byte{})
	f.Add(wireBytes(f, validCheck()))
	bad := validCheck()
	bad.Updates[0].After = &jobpolicyv1.JobStatus{
		Active: -1, Uncounted: &jobpolicyv1.UncountedTerminatedPods{Failed: [][]byte{nil, nil}},
		Conditions:       []*jobpolicyv1.JobCondition{{Type: complete, Status: 1}, {Type: failed, Status: 1}, {Type: complete, Status: 2}},
		CompletedIndexes: ranges(1<<31-1, -1<<31),
	}
	f.Add(wireBytes(f, bad))
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &jobpolicyv1.CheckJobStatusRequest{}
		if proto.Unmarshal(data, req) != nil {
			return
		}
		resp, err := engine.CheckJobStatus(req)
		if (resp == nil) == (err == nil) {
			t.Errorf("CheckJobStatus = %v, %v", resp, err)
		}
		for _, answer := range resp.GetChecks() {
			if n := len(answer.GetViolations()); n > jobstatus.MaxViolations {
				t.Errorf("%d violations", n)
			}
			for _, v := range answer.GetViolations() {
				if v.GetRule() == "" || v.GetField() == "" || v.GetDescription() == "" {
					t.Errorf("half a violation: %v", v)
				}
			}
		}
	})
}

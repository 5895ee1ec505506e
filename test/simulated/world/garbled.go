package world

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// garblings change an answer about a Job into one that breaks the contract.
var garblings = []func(*jobpolicyv1.DecideJobResponse){
	func(a *jobpolicyv1.DecideJobResponse) { a.RequestId += "?" },
	func(a *jobpolicyv1.DecideJobResponse) { a.Disposition = 0 },
	func(a *jobpolicyv1.DecideJobResponse) { a.Disposition = 99 },
	func(a *jobpolicyv1.DecideJobResponse) { a.Create = &jobpolicyv1.CreatePods{Count: -5} },
	func(a *jobpolicyv1.DecideJobResponse) { a.Create = &jobpolicyv1.CreatePods{Count: 1 << 30} },
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Create = &jobpolicyv1.CreatePods{Count: 2, Indexes: ranges(5, 2)}
	},
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Create = &jobpolicyv1.CreatePods{Count: 2, Indexes: ranges(-2, -1)}
	},
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Create, a.Delete = &jobpolicyv1.CreatePods{Count: 1}, []*jobpolicyv1.DeletePod{{Uid: make([]byte, 16)}}
	},
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Delete = append(a.Delete, &jobpolicyv1.DeletePod{Uid: []byte("short")})
	},
	func(a *jobpolicyv1.DecideJobResponse) { a.Release = append(a.Release, []byte("short")) },
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Release = append(a.Release, bytes.Repeat([]byte{7}, 16), bytes.Repeat([]byte{7}, 16))
	},
	func(a *jobpolicyv1.DecideJobResponse) { a.Status = &jobpolicyv1.JobStatus{Failed: -1} },
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Status = &jobpolicyv1.JobStatus{CompletedIndexes: ranges(0, 3, 2, 4)}
	},
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Status = &jobpolicyv1.JobStatus{Conditions: []*jobpolicyv1.JobCondition{{Type: "Complete"}}}
	},
	func(a *jobpolicyv1.DecideJobResponse) { a.RequeueTime = &timestamppb.Timestamp{Nanos: -1} },
	func(a *jobpolicyv1.DecideJobResponse) {
		a.Events = append(a.Events, &jobpolicyv1.JobEvent{Reason: "\xff"})
	},
}

// cronGarblings do the same to an answer about a CronJob.
var cronGarblings = []func(*jobpolicyv1.DecideCronJobResponse){
	func(a *jobpolicyv1.DecideCronJobResponse) { a.RequestId += "?" },
	func(a *jobpolicyv1.DecideCronJobResponse) { a.Disposition = 0 },
	func(a *jobpolicyv1.DecideCronJobResponse) { a.Disposition = 99 },
}

// ranges is a set of indexes as pairs of the first and the last one.
func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

// garble corrupts an answer about a Job. If the Job has finished, the executor reads only
// whether to delete it.
func garble(r *request, answer *jobpolicyv1.DecideJobResponse, finished bool) {
	n := len(garblings)
	if finished {
		n = 1
	}
	garblings[r.IntN(n)](answer)
}

// asEarlier lets an engine of an earlier contract answer. It does not know some fields:
// most deferrals of steps, the indexes of pods that are not listed, and some fields of
// specs.
func asEarlier(req *jobpolicyv1.DecideJobRequest) error {
	if req.GetSpec().GetSuccessPolicy() != nil {
		return &engine.UnsupportedError{Field: "spec.12", Description: "is the number of an unknown field, which needs a newer engine"}
	}
	req.Deferrals = slices.DeleteFunc(req.Deferrals, func(d *jobpolicyv1.Deferral) bool {
		return d.GetStep() != jobpolicyv1.Step_STEP_CREATE_PODS
	})
	if req.UnlistedPods != nil {
		req.UnlistedPods.FailedIndexes = nil
	}
	return nil
}

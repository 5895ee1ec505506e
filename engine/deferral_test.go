package engine_test

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// deferUntil makes the request defer a step until then, whatever it asked before;
// with nil it does not defer the step.
func deferUntil(req *jobpolicyv1.DecideJobRequest, step jobpolicyv1.Step, until *timestamppb.Timestamp) {
	req.Deferrals = slices.DeleteFunc(req.Deferrals, func(d *jobpolicyv1.Deferral) bool { return d.GetStep() == step })
	if until != nil {
		req.Deferrals = append(req.Deferrals, &jobpolicyv1.Deferral{Step: step, Until: until})
	}
}

// deferredUntil is until when the request defers a step; asked is false if it does
// not defer it.
func deferredUntil(req *jobpolicyv1.DecideJobRequest, step jobpolicyv1.Step) (until time.Time, asked bool) {
	return waits.DeferredUntil(req.GetDeferrals(), step)
}

// deferred reports whether the request defers a step until later than now.
func deferred(req *jobpolicyv1.DecideJobRequest, step jobpolicyv1.Step) bool {
	until, _ := deferredUntil(req, step)
	return until.After(req.GetNow().AsTime())
}

const (
	createPods         = jobpolicyv1.Step_STEP_CREATE_PODS
	deletePods         = jobpolicyv1.Step_STEP_DELETE_PODS
	writeRoutineStatus = jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS
	recordPods         = jobpolicyv1.Step_STEP_RECORD_PODS
)

package engine_test

import (
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// manyFailed is about a Job that fails with n pods which failed at the same time. They have no names, so that only how they
// failed tells them apart.
func manyFailed(tb testing.TB, n int, told *int32) *request {
	tb.Helper()
	req := withFinished(steady(tb, 1), n)
	req.Spec.BackoffLimit = 0
	req.Spec.Options = &jobpolicyv1.JobOptions{EndCondition: true, EndConditionFailures: told}
	for i, row := range req.GetUnaccountedPods() {
		row.Phase, row.Index, row.FinishedTime = jobpolicyv1.PodPhase_POD_PHASE_FAILED, proto.Int32(1), req.GetUnaccountedPods()[0].GetFinishedTime()
		row.Failure = &jobpolicyv1.PodFailure{ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 1, Reason: "R" + strconv.Itoa(i%100)}}}
	}
	return req
}

// To tell the last of many failed pods, each is looked at a fixed number of times: what that allocates for a pod does not
// depend on how many there are.
func TestToldFailuresCostTheSameForEachPod(t *testing.T) {
	const pods = 5000
	allocated := func(told *int32) float64 {
		req := manyFailed(t, pods, told)
		return testing.AllocsPerRun(1, func() {
			d, err := engine.DecideJob(req)
			if got := len(d.GetVerdict().GetEnd().GetFailures()); err != nil || got != int((&jobpolicyv1.JobOptions{EndConditionFailures: told}).GetEndConditionFailures()) {
				t.Fatalf("%d failures are told (%v)", got, err)
			}
		})
	}
	if more := (allocated(proto.Int32(10)) - allocated(nil)) / pods; more > 10 {
		t.Errorf("to tell ten failures takes %.1f more allocations for each failed pod", more)
	}
}

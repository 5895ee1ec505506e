package engine_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// leavesWithJob reports whether a pod is deleted together with its Job, and no verdict was
// declared before.
func leavesWithJob(req *request, pod *jobpolicyv1.UnaccountedPod) bool {
	deleting := req.GetSpec().GetDeleting() || req.GetNamespaceDeleting()
	declared := slices.ContainsFunc(req.GetStatus().GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
		return (c.GetType() == failureTarget || c.GetType() == criteriaMet) && c.GetStatus() == jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	})
	return deleting && pod.GetDeleting() && !declared
}

// While a Job is being deleted, its pods that are being deleted reach no verdict, however they
// end and whether they have a row or not: there is none that would not be reached if they were
// gone already. They are released, and nothing counts them.
func TestPodsThatAreDeletedWithTheirJobReachNoVerdict(t *testing.T) {
	reached, released := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Deferrals, req.UnlistedPods = nil, nil
		req.Settings.MaxUncountedPods = 0 // Enough for all, so that the rows are in one order.
		req.Spec.Deleting = rapid.Bool().Draw(t, "deleting, not by namespace")
		req.NamespaceDeleting = !req.Spec.Deleting
		if req.Status == nil {
			req.Status = &jobpolicyv1.JobStatus{}
		}
		req.Status.Conditions = nil
		for _, pod := range req.UnaccountedPods {
			ended := pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
			pod.Deleting = !ended || rapid.Bool().Draw(t, "deleted")
		}
		leaving := func(pod *jobpolicyv1.UnaccountedPod) bool {
			listed := append(slices.Clone(req.Status.GetUncounted().GetSucceeded()), req.Status.GetUncounted().GetFailed()...)
			return pod.Deleting && !slices.ContainsFunc(listed, func(uid []byte) bool { return string(uid) == string(pod.Uid) })
		}
		gone := proto.CloneOf(req)
		gone.UnaccountedPods = slices.DeleteFunc(gone.UnaccountedPods, leaving)
		with, without := decideOn(t, req), decideOn(t, gone)
		if v := with.GetVerdict(); v != nil {
			reached++
			if !proto.Equal(v, without.GetVerdict()) {
				t.Fatalf("verdict %v, and without the pods that are deleted %v", v, without.GetVerdict())
			}
		}
		if a, b := nextStatus(req, with), nextStatus(gone, without); a.GetFailed() != b.GetFailed() || a.GetSucceeded() != b.GetSucceeded() ||
			!proto.Equal(a.GetUncounted(), b.GetUncounted()) || !proto.Equal(a.GetCompletedIndexes(), b.GetCompletedIndexes()) {
			t.Fatalf("status %v, and without the pods that are deleted %v", a, b)
		}
		for _, pod := range req.UnaccountedPods {
			if with.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY || !leaving(pod) {
				continue
			}
			released++
			if !slices.ContainsFunc(with.Release, func(uid []byte) bool { return string(uid) == string(pod.Uid) }) {
				t.Fatalf("pod %s keeps its finalizer", uidName(pod.Uid))
			}
		}
	})
	if reached == 0 || released == 0 {
		t.Errorf("%d verdicts reached, %d pods released, want some of both", reached, released)
	}
}

// nextStatus is the status after a decision.
func nextStatus(req *request, resp *jobpolicyv1.DecideJobResponse) *jobpolicyv1.JobStatus {
	if resp.GetStatus() == nil {
		return req.GetStatus()
	}
	return resp.GetStatus()
}

func decideOn(t *rapid.T, req *request) *jobpolicyv1.DecideJobResponse {
	resp, err := engine.DecideJob(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

package engine_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Requests as large as the contract allows are decided on like any other.
// BenchmarkDecideJob measures how long they take; a decision whose time grows with
// the product of two limits exceeds the time limit of the test.
func TestLargestRequests(t *testing.T) {
	cases := map[string]func(testing.TB) *request{
		"every exit code of every container against every rule": exitCodesGalore,
		"as many rows as there may be":                          func(t testing.TB) *request { return withFinished(steady(t, 1000), 100_000) },
		"as many ranges as there may be": func(t testing.TB) *request {
			req := scattered(t)
			req.Spec.Completions = proto.Int32(1<<31 - 1)
			req.Spec.Parallelism = 1<<31 - 1
			req.Settings = &jobpolicyv1.Settings{MaxPodChanges: 100_000}
			return req
		},
		"as many indexes as may be limited one by one, all waiting for their next try": func(t testing.TB) *request {
			return awaitingRetry(t, 100_000)
		},
		"as many changes as there may be": func(t testing.TB) *request {
			req := scaleDown(t, 100_000)
			req.Spec.Parallelism = 0
			req.Settings = &jobpolicyv1.Settings{MaxPodChanges: 100_000, MaxUncountedPods: 100_000}
			return req
		},
	}
	for name, largest := range cases {
		t.Run(name, func(t *testing.T) {
			req := largest(t)
			resp, err := engine.DecideJob(req)
			if err != nil {
				t.Fatal(err)
			}
			if broken := brokenPromises(req, resp); len(broken) > 0 {
				t.Error(broken)
			}
		})
	}
}

// exitCodesGalore is a request of nearly 16 MiB in which no rule ever matches.
func exitCodesGalore(t testing.TB) *request {
	s := newScene()
	s.mustTell(t, "job completions=5")
	policy := &jobpolicyv1.PodFailurePolicy{}
	for range 20 {
		codes := &jobpolicyv1.ExitCodesRequirement{Operator: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN}
		for code := range int32(255) {
			codes.Values = append(codes.Values, 1000+code)
		}
		policy.Rules = append(policy.Rules, &jobpolicyv1.PodFailurePolicyRule{
			Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB, OnExitCodes: codes,
		})
	}
	s.req.Spec.PodFailurePolicy = policy
	for i := range 4000 {
		failure := &jobpolicyv1.PodFailure{}
		for range 1000 {
			failure.ContainerExits = append(failure.ContainerExits, &jobpolicyv1.ContainerExit{ExitCode: 1})
		}
		s.req.UnaccountedPods = append(s.req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{
			Uid: numberedUID(i), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: at(0), Failure: failure,
		})
	}
	return s.req
}

// Index sets are built and compared as sets. A copy of their messages, one by
// one, would show as an allocation for each of the 50000 ranges.
func TestIndexRangesAreNotCopiedOneByOne(t *testing.T) {
	cases := map[string]*request{
		"completed indexes":            scattered(t),
		"completed and failed indexes": scatteredFailures(t),
		"finished pods to be deleted":  manyFinished(t),
	}
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			allocations := testing.AllocsPerRun(1, func() {
				if _, err := engine.DecideJob(req); err != nil {
					t.Fatal(err)
				}
			})
			if allocations > 1000 {
				t.Errorf("%v allocations, want at most 1000", allocations)
			}
		})
	}
}

// manyFinished is a Job with many indexes that keeps no finished pod but those that may raise the resources of further ones.
func manyFinished(t testing.TB) *request {
	req := scatteredFailures(t)
	req.Spec.Options = &jobpolicyv1.JobOptions{
		KeepFinishedPods: &jobpolicyv1.KeepFinishedPods{Failed: proto.Int32(0)}, NextTryResources: &jobpolicyv1.NextTryResources{Resource: jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY, Max: "1Gi"},
	}
	req.FinishedPods = &jobpolicyv1.FinishedPods{Failed: 5000}
	for i := range 5000 {
		req.FinishedPods.First = append(req.FinishedPods.First, &jobpolicyv1.FinishedPod{
			Uid: numberedUID(i), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, Index: proto.Int32(int32(i)), FinishedTime: at(0),
		})
	}
	return req
}

// awaitingRetry is a Job with limits per index, of which every index has failed
// once and may be tried again.
func awaitingRetry(t testing.TB, n int) *request {
	s := newScene()
	s.mustTell(t, "job mode=Indexed backoffLimit=2147483647 backoffLimitPerIndex=1\nstatus start=0s\nnow 600s\nsettings maxChanges=100000")
	s.req.Spec.Parallelism, s.req.Spec.Completions = int32(n), proto.Int32(int32(n))
	for i := range n {
		s.req.UnaccountedPods = append(s.req.UnaccountedPods, &jobpolicyv1.UnaccountedPod{
			Uid: numberedUID(i), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: at(0), Index: proto.Int32(int32(i)),
		})
	}
	return s.req
}

package engine_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// BenchmarkDecideJob measures one decision. Only pods with a row cost time.
func BenchmarkDecideJob(b *testing.B) {
	benchmarks := []struct {
		name string
		make func(testing.TB) *request
	}{
		{name: "settled/pods=1", make: func(b testing.TB) *request { return steady(b, 1) }},
		{name: "settled/pods=1000", make: func(b testing.TB) *request { return steady(b, 1000) }},
		{name: "settled/pods=100000", make: func(b testing.TB) *request { return steady(b, 100_000) }},
		{name: "finished=1/pods=1", make: func(b testing.TB) *request { return withFinished(steady(b, 1), 1) }},
		{name: "finished=1/pods=1000", make: func(b testing.TB) *request { return withFinished(steady(b, 1000), 1) }},
		{name: "finished=1/pods=100000", make: func(b testing.TB) *request { return withFinished(steady(b, 100_000), 1) }},
		{name: "finished=500/pods=1000", make: func(b testing.TB) *request { return withFinished(steady(b, 1000), 500) }},
		{name: "finished=100000/pods=1000", make: func(b testing.TB) *request { return withFinished(steady(b, 1000), 100_000) }},
		{name: "scaledown/rows=5000", make: func(b testing.TB) *request { return scaleDown(b, 5000) }},
		{name: "scaledown/rows=100000", make: func(b testing.TB) *request { return scaleDown(b, 100_000) }},
		{name: "indexes=100000/scattered", make: scattered},
		{name: "indexes=100000/scattered/perIndex", make: scatteredFailures},
		{name: "indexes=100000/retried", make: func(b testing.TB) *request { return awaitingRetry(b, 100_000) }},
		{name: "failed=100000/told=10", make: func(b testing.TB) *request { return manyFailed(b, 100_000, proto.Int32(10)) }},
		{name: "exits=4000000/rules=20", make: exitCodesGalore},
	}
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			req := bm.make(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.DecideJob(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExplain measures a decision with each amount of explanation, and the size of
// the answer on the wire.
func BenchmarkExplain(b *testing.B) {
	situations := map[string]func(testing.TB) *request{
		"settled":    func(b testing.TB) *request { return steady(b, 10) },
		"finished=1": func(b testing.TB) *request { return withFinished(steady(b, 10), 1) },
	}
	for name, situation := range situations {
		for _, explain := range []jobpolicyv1.Explain{
			jobpolicyv1.Explain_EXPLAIN_NONE, jobpolicyv1.Explain_EXPLAIN_FACTS, jobpolicyv1.Explain_EXPLAIN_FULL,
		} {
			b.Run(name+"/"+explain.String(), func(b *testing.B) {
				req := situation(b)
				req.Settings = &jobpolicyv1.Settings{Explain: explain}
				var resp *jobpolicyv1.DecideJobResponse
				for b.Loop() {
					var err error
					if resp, err = engine.DecideJob(req); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(proto.Size(resp)), "bytes/answer")
			})
		}
	}
}

// steady is an Indexed Job with n pods running and twice as many completions.
func steady(b testing.TB, n int32) *request {
	s := newScene()
	s.mustTell(b, "job mode=Indexed\nstatus start=0s\nnow 60s")
	s.req.Spec.Parallelism, s.req.Spec.Completions = n, proto.Int32(2*n)
	s.req.Pods = &jobpolicyv1.PodSummary{
		Active: n, Ready: n, TrackedActive: n,
		ActiveIndexes: ranges(0, n-1),
	}
	s.req.Status.Active, s.req.Status.Ready, s.req.Status.Terminating = n, proto.Int32(n), proto.Int32(0)
	return s.req
}

// withFinished adds n pods that just ended. Every tenth of them failed.
func withFinished(req *request, n int) *request {
	for i := range n {
		pod := &jobpolicyv1.UnaccountedPod{
			Uid: numberedUID(i), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, FinishedTime: at(59),
			Index: proto.Int32(req.GetPods().GetActive() + int32(i)),
		}
		if i%10 == 9 {
			pod.Phase = jobpolicyv1.PodPhase_POD_PHASE_FAILED
		}
		req.UnaccountedPods = append(req.UnaccountedPods, pod)
	}
	return req
}

// scaleDown is a Job with n pods that wants only half of them.
func scaleDown(b testing.TB, n int32) *request {
	req := steady(b, n)
	req.Spec.Parallelism = n / 2
	req.ActivePods = &jobpolicyv1.ActivePods{}
	for i := range n {
		req.ActivePods.Pods = append(req.ActivePods.Pods, &jobpolicyv1.ActivePod{
			Uid: numberedUID(int(i)), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Index: proto.Int32(i),
			Scheduled: true, Ready: true, ReadySince: at(1), CreatedTime: at(0), Tracked: true,
		})
	}
	return req
}

// scattered is a Job of 100000 indexes of which every other one is complete:
// as many ranges as there can be.
func scattered(b testing.TB) *request {
	s := newScene()
	s.mustTell(b, "job mode=Indexed completions=100000 parallelism=1000\nstatus start=0s succeeded=50000\nnow 60s")
	s.req.Status.CompletedIndexes = &jobpolicyv1.IndexSet{}
	for ix := int32(0); ix < 100_000; ix += 2 {
		s.req.Status.CompletedIndexes.Ranges = append(s.req.Status.CompletedIndexes.Ranges, &jobpolicyv1.IndexRange{First: ix, Last: ix})
	}
	return s.req
}

// scatteredFailures is a Job with limits per index and 100000 indexes. A quarter of them
// is complete and a quarter has failed; no two of these are neighbours.
func scatteredFailures(b testing.TB) *request {
	s := newScene()
	s.mustTell(b, "job mode=Indexed completions=100000 parallelism=1000 backoffLimit=2147483647 backoffLimitPerIndex=0\n"+
		"status start=0s succeeded=25000 failed=25000\nnow 60s")
	s.req.Status.CompletedIndexes, s.req.Status.FailedIndexes = &jobpolicyv1.IndexSet{}, &jobpolicyv1.IndexSet{}
	for ix := int32(0); ix < 100_000; ix += 4 {
		completed, failed := s.req.Status.CompletedIndexes, s.req.Status.FailedIndexes
		completed.Ranges = append(completed.Ranges, &jobpolicyv1.IndexRange{First: ix, Last: ix})
		failed.Ranges = append(failed.Ranges, &jobpolicyv1.IndexRange{First: ix + 2, Last: ix + 2})
	}
	return s.req
}

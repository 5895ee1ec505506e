package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Job with options.keep_finished_pods keeps the pods that finished last. Until it has a verdict, the engine deletes
// the others once they are counted. What later decisions need stays in any case, so that a restart of the caller
// changes nothing (invariant I10):
//
//   - The retry delay needs the last success and, while failures delay the next pod, the last 64 failures since then.
//   - JobEnd needs the last failure that counts, and as many of the last failures as options.end_condition_failures says.
//   - options.next_try_resources needs the failures of each index that is not done; of a NON_INDEXED Job, all failures.
//
// With limits per index, the delays need none of them: the last failed pod of an index is unaccounted until it is replaced, and
// then its replacement has the counts. But explanations tell how many failed in a row there, too.

// neededSuccesses is how many of the last successes stay in any case.
const neededSuccesses = 1

// prune plans which finished pods to delete.
func (p plan) prune(s *snapshot, t tally, v verdict) plan {
	keep, pods := s.spec.GetOptions().GetKeepFinishedPods(), s.req.GetFinishedPods()
	if keep == nil || pods == nil || v.reached() || s.deleting() {
		return p
	}
	var chosen []*jobpolicyv1.FinishedPod
	if keep.Succeeded != nil {
		chosen = append(chosen, surplus(pods.GetFirst(), jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, pods.GetSucceeded()-max(keep.GetSucceeded(), neededSuccesses))...)
	}
	if keep.Failed != nil {
		failed := surplus(pods.GetFirst(), jobpolicyv1.PodPhase_POD_PHASE_FAILED, pods.GetFailed()-max(keep.GetFailed(), s.explaining(t), s.tellable()))
		chosen = append(chosen, slices.DeleteFunc(notDelaying(t.retry, failed, pods.GetFailed()), s.mayRaise)...)
	}
	known := len(chosen)
	chosen = slices.DeleteFunc(chosen, s.uncounted)
	p.countedNext = len(chosen) < known
	if later := s.deferred(jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS,
		"finished pods to be deleted: %d; they could not be deleted, the caller tries again later", len(chosen)); later != nil && len(chosen) > 0 {
		p.waits = append(p.waits, later)
		return p
	}
	slices.SortFunc(chosen, byFinishedTime)
	for _, pod := range chosen[:min(len(chosen), s.maxPodChanges)] {
		p.finished = append(p.finished, pod.GetUid())
	}
	slices.SortFunc(p.finished, bytes.Compare)
	return p
}

// surplus are those n pods of a phase that finished first, or fewer if the request lists fewer.
func surplus(pods []*jobpolicyv1.FinishedPod, phase jobpolicyv1.PodPhase, n int32) []*jobpolicyv1.FinishedPod {
	var of []*jobpolicyv1.FinishedPod
	for _, pod := range pods {
		if pod.GetPhase() == phase {
			of = append(of, pod)
		}
	}
	slices.SortFunc(of, byFinishedTime)
	return of[:min(len(of), max(0, int(n)))]
}

func byFinishedTime(a, b *jobpolicyv1.FinishedPod) int {
	x, y := a.GetFinishedTime(), b.GetFinishedTime()
	return cmp.Or(cmp.Compare(x.GetSeconds(), y.GetSeconds()), cmp.Compare(x.GetNanos(), y.GetNanos()), bytes.Compare(a.GetUid(), b.GetUid()))
}

// uncounted reports whether the status lists a pod whose release is confirmed: the next status counts it.
func (s *snapshot) uncounted(pod *jobpolicyv1.FinishedPod) bool {
	return s.recordedSucceeded[string(pod.GetUid())] || s.recordedFailed[string(pod.GetUid())]
}

// notDelaying are those of the pods that finished first, of all failed ones, on which the delay of the next pod does not
// depend: it counts the last 64 since the last success.
func notDelaying(r retryState, first []*jobpolicyv1.FinishedPod, all int32) []*jobpolicyv1.FinishedPod {
	if r.consecutive == 0 {
		return first
	}
	older := max(0, min(len(first), int(all)-maxRetryFacts))
	return append(first[:older:older], slices.DeleteFunc(first[older:], func(pod *jobpolicyv1.FinishedPod) bool {
		return r.lastSuccess.IsZero() || pod.GetFinishedTime().AsTime().After(r.lastSuccess)
	})...)
}

// explaining is how many of the recent failures may say how the Job fails, by any of the rules of jobEnd: those from the last one
// on that counts, and from the last one on of an index that has failed.
func (s *snapshot) explaining(t tally) int32 {
	counts := func(f *jobpolicyv1.PodFailureFact) bool { return s.failurePolicy.match(f.GetFailure()).counts() }
	ofFailedIndex := func(f *jobpolicyv1.PodFailureFact) bool {
		return f.Index != nil && t.failedIndexes.Has(f.GetIndex())
	}
	facts := s.req.GetRetry().GetRecentFailures()
	return max(sinceLast(facts, counts), sinceLast(facts, ofFailedIndex))
}

// tellable is how many of the recent failures the end of the Job may tell: as many as it is to tell, and those that ended at the same
// time as the last of them.
func (s *snapshot) tellable() (n int32) {
	most := int(s.spec.GetOptions().GetEndConditionFailures())
	if most == 0 {
		return 0
	}
	var times []time.Time
	for _, f := range s.req.GetRetry().GetRecentFailures() {
		times = append(times, f.GetFinishedTime().AsTime())
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	for i, at := range times {
		if i < most || at.Equal(times[most-1]) {
			n++
		}
	}
	return n
}

// sinceLast counts the failures that ended at the time of the last one that is meant, or later.
func sinceLast(facts []*jobpolicyv1.PodFailureFact, meant func(*jobpolicyv1.PodFailureFact) bool) (n int32) {
	var last time.Time
	for _, f := range facts {
		if at := f.GetFinishedTime().AsTime(); meant(f) && at.After(last) {
			last = at
		}
	}
	for _, f := range facts {
		if !last.IsZero() && !f.GetFinishedTime().AsTime().Before(last) {
			n++
		}
	}
	return n
}

// mayRaise reports whether the resources of further pods may follow from a failed pod.
func (s *snapshot) mayRaise(pod *jobpolicyv1.FinishedPod) bool {
	if s.spec.GetOptions().GetNextTryResources() == nil {
		return false
	}
	return !s.indexed || pod.Index == nil || !s.completed.Has(pod.GetIndex()) && !s.failedIndexes.Has(pod.GetIndex())
}

package world

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// failsOften lets six pods of a Job fail, long after each other, and accounts for them
// unless a policy ignores them: the next pod may come 5m20s after the last failure.
// beforeLast happens before the last failure.
func failsOften(tp *tape, job types.UID, beforeLast func(), changes ...func(*corev1.Pod)) {
	tp.status(executorA, job, func(s *batchv1.JobStatus) { s.StartTime = new(metav1.NewTime(tp.now)) })
	for i := range 6 {
		if i == 5 {
			beforeLast()
		}
		tp.wait(longestDelay)
		uid := tp.pod(executorA, job, fmt.Sprintf("f-%d", i), noIndex)
		tp.ends(uid, 137, changes...)
		if tp.stored[job].(*batchv1.Job).Spec.PodFailurePolicy == nil {
			tp.status(executorA, job, func(s *batchv1.JobStatus) { failedList(s, uid) })
		}
		tp.release(executorA, uid)
		counts(tp)
	}
}

// An executor may wait for the retry delay of all that may count as failures in a row. After
// a success that it must know of, it must not wait any longer.
func TestRetryDelayHoldsBack(t *testing.T) {
	job := func(tp *tape, changes ...func(*batchv1.Job)) types.UID {
		return tp.job("a", append(changes, func(job *batchv1.Job) {
			job.Spec.BackoffLimit, job.Spec.Completions = new(int32(20)), new(int32(5))
		})...)
	}
	nothing := func() {}
	disrupted := func(tp *tape) { failsOften(tp, job(tp), nothing, disrupts) }
	succeeds := func(tp *tape) {
		tp.wait(longestDelay)
		uid := tp.pod(executorA, "job-a", "s", noIndex)
		tp.ends(uid, 0)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, uid) })
		tp.release(executorA, uid)
		counts(tp)
	}
	runStreams(t, map[string]streamCase{
		"six disruptions that no policy ignores, minutes ago": {play: looks(lookTime, disrupted)},
		"six disruptions that no policy ignores, long ago":    {want: []string{"liveness"}, play: looks(2*lookTime, disrupted)},
		"six disruptions that the policy ignores": {want: []string{"liveness"}, play: looks(lookTime, func(tp *tape) {
			failsOften(tp, job(tp, policyOn(137, batchv1.PodFailurePolicyActionIgnore)), nothing, disrupts)
		})},
		"six failures, and a success before the last": {want: []string{"liveness"}, play: looks(lookTime, func(tp *tape) {
			failsOften(tp, job(tp), func() { succeeds(tp) })
		})},
		"six failures, and a success before the last of which nothing tells any more": {play: looks(lookTime, func(tp *tape) {
			failsOften(tp, job(tp), func() {
				succeeds(tp)
				tp.removes(user, "pods", "s")
			})
		})},
		"six failures, and one more without its finalizer": {play: looks(2*lookTime, func(tp *tape) {
			failsOften(tp, job(tp), func() {
				tp.wait(longestDelay)
				uid := tp.pod(executorA, "job-a", "loose", noIndex)
				tp.release(user, uid)
				tp.ends(uid, 1)
			})
		})},
	})
}

// A failed pod with limits per index is accounted for when its index has the next pod,
// and not after its end.
func TestFailedPodsOfAnIndexAreRecordedInTime(t *testing.T) {
	records := func(wait time.Duration) func(*tape) {
		return func(tp *tape) {
			tp.judge.rivals = false
			tp.job("a", indexedJob(1), retries(3))
			tp.pod(executorA, "job-a", "a-0", 0, failedBefore("0"))
			tp.ends("a-0", 1)
			tp.wait(firstDelay)
			tp.pod(executorA, "job-a", "a-1", 0, failedBefore("1"))
			tp.ends("a-1", 1)
			tp.wait(wait)
			records(tp, "a-0")
		}
	}
	runStreams(t, map[string]streamCase{
		"when its index has the next pod, which has failed, too": {play: records(time.Second)},
		"long after that": {want: []string{"late"}, play: records(2 * routine)},
	})
}

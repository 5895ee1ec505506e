package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// create lets the executor create a pod of Job a.
func create(tp *tape, name string, index int32) { tp.pod(executorA, "job-a", name, index) }

// An executor creates no more pods than wanted (I6).
func TestCreation(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"as many as wanted": {play: func(tp *tape) { starts(tp) }},
		"one too many":      {want: []string{"I6"}, play: running(func(tp *tape) { create(tp, "a-2", noIndex) })},
		"in place of one that was labelled back a moment ago": {play: running(func(tp *tape) {
			relabels(tp, "a-0")
			create(tp, "a-2", noIndex)
		})},
		"beside one that was labelled back long ago": {want: []string{"I6"}, play: running(func(tp *tape) {
			relabels(tp, "a-0")
			tp.wait(time.Hour)
			create(tp, "a-2", noIndex)
		})},
		"one too many for what is left": {want: []string{"I6"}, play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 1; succeededList(s, "a-0") })
			create(tp, "a-2", noIndex)
		})},
		"one too many, while another executor is active": {play: func(tp *tape) {
			tp.job("a")
			tp.pod(executorB, "job-a", "b-0", noIndex)
			startsPods(tp)
			tp.status(executorB, "job-a", func(s *batchv1.JobStatus) { s.Active = 3 })
			tp.pod(executorB, "job-a", "b-1", noIndex)
		}},
		"beside those of an executor that has gone long ago": {want: []string{"I6"}, play: running(func(tp *tape) {
			tp.wait(time.Hour)
			tp.pod(executorB, "job-a", "b-0", noIndex)
		})},
		"in place of one that is being deleted": {play: running(func(tp *tape) {
			tp.deletes(user, "a-0")
			tp.wait(10 * time.Second)
			create(tp, "a-2", noIndex)
		})},
		"in place of one that is to end first": {want: []string{"I6"}, play: func(tp *tape) {
			starts(tp, func(job *batchv1.Job) { job.Spec.PodReplacementPolicy = new(batchv1.Failed) })
			tp.deletes(user, "a-0")
			tp.wait(10 * time.Second)
			create(tp, "a-2", noIndex)
		}},
		"another one for a work queue that is done": {want: []string{"I6"}, play: func(tp *tape) {
			starts(tp, func(job *batchv1.Job) { job.Spec.Completions = nil })
			tp.ends("a-0", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-0") })
			create(tp, "a-2", noIndex)
		}},
	})
}

// An executor need not count successes of indexes that the Job dropped, or of pods that left
// it, and need not know what changed a moment ago.
func TestCreationAfterAChange(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"for an index that succeeded before a resize dropped it": {play: func(tp *tape) {
			dropsAnIndex(tp)
			tp.wait(time.Hour)
			create(tp, "a-2", 1)
		}},
		"for a pod that succeeded and that it let go because nothing controlled it": {play: running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
			tp.release(executorA, "a-0")
			tp.wait(time.Hour)
			create(tp, "a-2", noIndex)
		})},
		"for a pod that succeeded and that it lost, with the finalizer on": {play: loses(func(pod *corev1.Pod) { pod.Labels = nil })},
		"for a pod that succeeded and that it can adopt":                   {want: []string{"I6"}, play: loses(func(*corev1.Pod) {})},
		"one more for a Job that was just scaled down": {play: func(tp *tape) {
			tp.job("a")
			create(tp, "a-0", noIndex)
			tp.spec(parallel(1))
			create(tp, "a-1", noIndex)
		}},
	})
}

// loses lets a pod succeed and lose its Job, but keep its finalizer. Then the executor creates another.
func loses(change func(*corev1.Pod)) func(*tape) {
	return func(tp *tape) {
		starts(tp)
		tp.ends("a-0", 0)
		tp.edit("webhook", "a-0", change)
		tp.wait(time.Hour)
		tp.edit(executorA, "a-0", func(pod *corev1.Pod) { pod.OwnerReferences = nil })
		create(tp, "a-2", noIndex)
	}
}

// An executor creates no pod of a Job that wants none (I6).
func TestCreationForAJobThatWantsNone(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"for a suspended Job": {want: []string{"I6"}, play: func(tp *tape) {
			tp.job("a", suspend)
			create(tp, "a-0", noIndex)
		}},
		"for a Job that was suspended a moment ago": {play: func(tp *tape) {
			tp.job("a")
			tp.spec(suspend)
			create(tp, "a-0", noIndex)
		}},
		"for a Job that was suspended long ago": {want: []string{"I6"}, play: func(tp *tape) {
			tp.job("a")
			tp.spec(suspend)
			tp.wait(time.Hour)
			create(tp, "a-0", noIndex)
		}},
		"for a finished Job": {want: []string{"I6"}, play: running(func(tp *tape) {
			completes(tp)
			create(tp, "a-2", noIndex)
		})},
		"for a Job with a verdict": {want: []string{"I6"}, play: func(tp *tape) {
			starts(tp, noRetries)
			fails(tp, "a-0")
			announcesFailure(tp)
			tp.wait(time.Minute)
			create(tp, "a-2", noIndex)
		}},
		"for a Job that is gone": {want: []string{"I6"}, play: func(tp *tape) {
			tp.job("a")
			tp.removes(user, "jobs", "job-a")
			tp.wait(time.Hour)
			create(tp, "a-0", noIndex)
		}},
		"for a Job that never was": {want: []string{"I8"}, play: func(tp *tape) { create(tp, "a-0", noIndex) }},
	})
}

// Each index has one pod, with the finalizer (I6, I1).
func TestCreationOfIndexes(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"without the finalizer": {want: []string{"I1"}, play: func(tp *tape) {
			tp.pod(executorA, tp.job("a"), "a-0", noIndex, func(pod *corev1.Pod) { pod.Finalizers = nil })
		}},
		"an index that runs":        {want: []string{"I6"}, play: func(tp *tape) { tp.job("a", indexedJob(2)); create(tp, "a-0", 0); create(tp, "a-1", 0) }},
		"two indexes":               {play: func(tp *tape) { tp.job("a", indexedJob(2)); create(tp, "a-0", 0); create(tp, "a-1", 1) }},
		"an index that is too high": {want: []string{"I6"}, play: func(tp *tape) { tp.job("a", indexedJob(2)); create(tp, "a-0", 2) }},
		"an index that is completed": {want: []string{"I6"}, play: func(tp *tape) {
			completesIndex0(tp)
			create(tp, "a-1", 0)
		}},
	})
}

// An executor deletes pods only for a reason.
func TestDeletion(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"of a pod that nothing asks to end": {want: []string{"deletion"}, play: running(func(tp *tape) { tp.deletes(executorA, "a-0") })},
		"of a suspended Job's pod": {play: running(func(tp *tape) {
			tp.spec(suspend)
			tp.release(executorA, "a-0")
			tp.deletes(executorA, "a-0")
		})},
		"of a Job that has failed": {play: func(tp *tape) {
			starts(tp, noRetries)
			tp.ends("a-0", 1)
			announcesFailure(tp)
			tp.deletes(executorA, "a-1")
		}},
		"of one of two pods with an index": {play: func(tp *tape) {
			tp.job("a", indexedJob(2))
			tp.pod(executorA, "job-a", "a-0", 0)
			tp.pod(user, "job-a", "a-1", 0)
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
		}},
		"of a Job nobody wants gone": {want: []string{"ttl"}, play: func(tp *tape) {
			tp.job("a")
			tp.removes(executorA, "jobs", "job-a")
		}},
	})
}

// again lets an executor create another pod of Job a.
func again(tp *tape, by, name string) { tp.pod(by, "job-a", name, noIndex) }

// A success of an index that the Job no longer wants ends a row of failures only for an
// executor that need not know yet that the index is not wanted.
func TestDelayAfterASuccessOfADroppedIndex(t *testing.T) {
	replaces := func(tp *tape, known time.Duration) {
		tp.job("a", indexedJob(2))
		tp.pod(executorA, "job-a", "a-0", 0)
		tp.pod(executorA, "job-a", "a-1", 1)
		tp.spec(sized(1, 1))
		tp.wait(known)
		tp.ends("a-0", 1)
		tp.wait(time.Second)
		tp.ends("a-1", 0)
		tp.wait(time.Second)
		tp.pod(executorA, "job-a", "a-2", 0)
	}
	runStreams(t, map[string]streamCase{
		"dropped a moment ago": {play: func(tp *tape) { replaces(tp, time.Second) }},
		"dropped long ago":     {want: []string{"I12"}, play: func(tp *tape) { replaces(tp, time.Hour) }},
	})
}

// Failed pods are replaced no faster than the retry delay allows (I12).
func TestDelay(t *testing.T) {
	replaces := func(waits ...time.Duration) func(*tape) {
		return running(func(tp *tape) {
			for i, wait := range waits {
				fails(tp, []types.UID{"a-0", "a-2"}[i])
				tp.wait(wait)
				again(tp, executorA, []string{"a-2", "a-3"}[i])
			}
		})
	}
	runStreams(t, map[string]streamCase{
		"in time":             {play: replaces(10*time.Second, 20*time.Second)},
		"too early":           {want: []string{"I12"}, play: replaces(9 * time.Second)},
		"too early after two": {want: []string{"I12"}, play: replaces(10*time.Second, 19*time.Second)},
		"too early after a failure that the policy ignores": {want: []string{"I12"}, play: func(tp *tape) {
			starts(tp, policyOn(1, batchv1.PodFailurePolicyActionIgnore))
			tp.ends("a-0", 1)
			tp.release(executorA, "a-0")
			again(tp, executorA, "a-2")
		}},
		"at once after a disruption": {play: running(func(tp *tape) {
			tp.ends("a-0", 137, disrupts)
			again(tp, executorA, "a-2")
		})},
		"at once after a success": {play: func(tp *tape) {
			starts(tp, completions(5))
			fails(tp, "a-0")
			tp.wait(time.Second)
			tp.ends("a-1", 0)
			again(tp, executorA, "a-2")
		}},
		"the delay has a limit": {play: func(tp *tape) {
			tp.job("a", func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(100)) })
			for i := range 12 {
				name := string(rune('a' + i))
				again(tp, executorA, name)
				tp.ends(types.UID(name), 1)
				tp.wait(longestDelay)
			}
		}},
	})
}

// An executor computes the delay from the failures that it can know of (I12, I10).
func TestDelayAfterFailuresThatAreGone(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"a failure that need not have been seen": {play: func(tp *tape) {
			tp.job("a")
			tp.pod(executorA, "job-a", "a-0", noIndex)
			tp.ends("a-0", 1)
			tp.pod(executorA, "job-a", "a-1", noIndex)
		}},
		"a failure after the executor let the pod go":  {play: letsGo(true)},
		"a failure before the executor let the pod go": {want: []string{"I1", "I12"}, play: letsGo(false)},
		"a failure that is gone, to a new executor": {play: running(func(tp *tape) {
			fails(tp, "a-0")
			tp.removes(user, "pods", "a-0")
			tp.wait(time.Second)
			tp.pod(executorB, "job-a", "b-0", noIndex)
		})},
		"a failure that is gone, to the executor that saw it": {want: []string{"I12"}, play: running(func(tp *tape) {
			fails(tp, "a-0")
			tp.removes(user, "pods", "a-0")
			tp.wait(time.Second)
			again(tp, executorA, "a-2")
		})},
		"a failure that another executor released, and that is gone": {play: func(tp *tape) {
			tp.judge.began(executorB, tp.now)
			starts(tp)
			tp.wait(2 * time.Minute)
			fails(tp, "a-0")
			tp.removes(user, "pods", "a-0")
			tp.wait(time.Second)
			tp.pod(executorB, "job-a", "b-0", noIndex)
		}},
		"a failure that another executor released, and that is there": {want: []string{"I12"}, play: func(tp *tape) {
			tp.judge.began(executorB, tp.now)
			starts(tp)
			tp.wait(2 * time.Minute)
			fails(tp, "a-0")
			tp.wait(time.Second)
			tp.pod(executorB, "job-a", "b-0", noIndex)
		}},
		"a failure that a new executor finds": {want: []string{"I12"}, play: running(func(tp *tape) {
			fails(tp, "a-0")
			tp.wait(time.Second)
			tp.pod(executorB, "job-a", "b-0", noIndex)
		})},
	})
}

// letsGo lets an executor release the pod of a suspended Job before or after it has failed. Then
// the Job is resumed, and the executor creates another pod.
func letsGo(before bool) func(*tape) {
	return func(tp *tape) {
		suspend := func(to bool) {
			tp.spec(func(job *batchv1.Job) { job.Spec.Suspend = new(to) })
		}
		tp.job("a", parallel(1))
		tp.pod(executorA, "job-a", "a-0", noIndex)
		tp.wait(time.Second)
		suspend(true)
		tp.deletes(user, "a-0")
		if before {
			tp.release(executorA, "a-0")
		}
		tp.wait(time.Second)
		tp.ends("a-0", 1)
		if !before {
			tp.release(executorA, "a-0")
		}
		suspend(false)
		tp.pod(executorA, "job-a", "a-1", noIndex)
	}
}

// The next pod of an index replaces the failed one that carries the most failures. Two active
// executors may have left two that carry as many: then it replaces the one that finished last.
func TestLastFailureOfAnIndex(t *testing.T) {
	limited := retries(9)
	replaces := func(earlier, later, next string) streamCase {
		return streamCase{play: func(tp *tape) {
			tp.job("a", indexedJob(1), limited)
			tp.pod(executorA, "job-a", "a-0", 0, failedBefore(earlier))
			tp.pod(executorB, "job-a", "b-0", 0, failedBefore(later))
			tp.ends("a-0", 1)
			tp.wait(time.Second)
			tp.ends("b-0", 1)
			tp.wait(10 * time.Minute)
			tp.pod(executorA, "job-a", "a-1", 0, failedBefore(next))
		}}
	}
	wrong := func(c streamCase) streamCase { c.want = []string{"I10"}; return c }
	runStreams(t, map[string]streamCase{
		"the later one carries more":                  replaces("1", "2", "3"),
		"the earlier one carries more":                replaces("2", "1", "3"),
		"as many as the one that carries fewer allow": wrong(replaces("2", "1", "2")),
		"both carry as many":                          replaces("1", "1", "2"),
		"a second deletion of the earlier one":        {play: deletedAgain(41 * time.Second)},
		"a second deletion that changes no order":     wrong(streamCase{play: deletedAgain(0)}),
	})
}

// deletedAgain lets a pod end that reports no time of its end, and then another one of its index,
// which the policy ignores. Some time after the first pod was deleted, it is deleted again. The
// next pod of the index replaces the first.
func deletedAgain(later time.Duration) func(*tape) {
	return func(tp *tape) {
		tp.job("a", indexedJob(1), policyOn(1, batchv1.PodFailurePolicyActionIgnore), retries(9))
		tp.pod(executorA, "job-a", "a-0", 0)
		tp.pod(executorB, "job-a", "b-0", 0)
		asked := tp.now.Add(time.Second)
		deleted := func(at time.Time) {
			tp.edit("pod-gc", "a-0", func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Status.Phase = new(metav1.NewTime(at)), new(int64(0)), corev1.PodFailed
			})
		}
		tp.wait(2 * time.Second)
		tp.ends("b-0", 1)
		tp.wait(time.Minute)
		deleted(asked)
		deleted(asked.Add(later))
		tp.wait(10 * time.Minute)
		tp.pod(executorA, "job-a", "a-1", 0, failedBefore("1"))
	}
}

// Each index of a Job with limits per index has its own delay (I12, I10).
func TestDelayOfAnIndex(t *testing.T) {
	replaces := func(wait time.Duration, failures string) func(*tape) {
		return func(tp *tape) {
			tp.job("a", indexedJob(2), retries(3))
			tp.pod(executorA, "job-a", "a-0", 0, failedBefore("0"))
			tp.ends("a-0", 1)
			tp.wait(wait)
			tp.pod(executorA, "job-a", "a-1", 0, failedBefore(failures))
		}
	}
	runStreams(t, map[string]streamCase{
		"of an index, in time":                                    {play: replaces(10*time.Second, "1")},
		"of an index, too early":                                  {want: []string{"I12"}, play: replaces(9*time.Second, "1")},
		"of an index that forgets how often it failed":            {want: []string{"I10"}, play: replaces(10*time.Second, "0")},
		"of an index whose pod came back to the Job a moment ago": {play: comesBack(time.Second)},
		"of an index whose pod came back long ago":                {want: []string{"I10"}, play: comesBack(time.Hour)},
	})
}

// comesBack lets a pod of an index fail while it is a stray. After it has matched the Job's
// selector again for some time, the executor that created it creates the next pod of the index as
// if there had been none.
func comesBack(ago time.Duration) func(*tape) {
	return func(tp *tape) {
		tp.job("a", indexedJob(2), retries(3))
		tp.pod(executorA, "job-a", "a-0", 0, failedBefore("0"))
		var labels map[string]string
		tp.edit("webhook", "a-0", func(pod *corev1.Pod) { labels, pod.Labels = pod.Labels, nil })
		tp.ends("a-0", 1)
		tp.wait(time.Minute)
		tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.Labels = labels })
		tp.wait(ago)
		tp.pod(executorA, "job-a", "a-1", 0, failedBefore("0"))
	}
}

func disrupts(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

func TestDelayAfter(t *testing.T) {
	j := newJudge(judgeOptions{})
	for failures, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute} {
		if got := j.delayAfter(failures); got != want {
			t.Errorf("delay after %d failures: %s, want %s", failures, got, want)
		}
	}
}

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func putsBack(tp *tape) {
	tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.Finalizers = []string{batchv1.JobTrackingFinalizer} })
}

// countsSuccess lets a pod of a running Job succeed, and be recorded, released and counted.
func countsSuccess(tp *tape) {
	tp.ends("a-0", 0)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-0"); s.Active = 1 })
	tp.release(executorA, "a-0")
	counts(tp)
}

// recordsWithVerdict lists a pod as failed and announces that the Job fails, in one status.
func recordsWithVerdict(tp *tape) {
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		failedList(s, "a-0")
		setCondition(s, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, tp.now)
	})
}

// A pod whose finalizer somebody removes counts nowhere. An executor that has seen the
// pod's end, but not the removal, may still count it.
func TestLetGo(t *testing.T) {
	verdict := func(tp *tape, code int32, wait time.Duration, kind batchv1.JobConditionType, reason string, list func(*batchv1.JobStatus, ...types.UID)) {
		tp.job("a", func(job *batchv1.Job) { job.Spec.Completions, job.Spec.BackoffLimit = new(int32(1)), new(int32(0)) })
		tp.pod(executorA, "job-a", "a-0", noIndex)
		tp.ends("a-0", code)
		tp.release(user, "a-0")
		tp.wait(wait)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { list(s, "a-0"); setCondition(s, kind, reason, tp.now) })
	}
	failure := func(wait time.Duration) func(*tape) {
		return func(tp *tape) {
			verdict(tp, 1, wait, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, failedList)
		}
	}
	success := func(wait time.Duration) func(*tape) {
		return func(tp *tape) {
			verdict(tp, 0, wait, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, succeededList)
		}
	}
	broken := []string{"I2", "verdict"}
	runStreams(t, map[string]streamCase{
		"a failure, a moment ago": {play: failure(time.Second)},
		"a failure, long ago":     {want: broken, play: failure(time.Hour)},
		"a success, a moment ago": {play: success(time.Second)},
		"a success, long ago":     {want: broken, play: success(time.Hour)},
	})
}

// Somebody may make a pod that was counted look as if it was not. Only then may it count
// once more.
func TestRevivals(t *testing.T) {
	three := sized(3, 2)
	counted := func(tp *tape) {
		starts(tp, three)
		fails(tp, "a-0")
		counts(tp)
	}
	succeed := func(tp *tape) {
		starts(tp, three)
		countsSuccess(tp)
		tp.pod(executorA, "job-a", "a-2", noIndex)
		tp.wait(time.Hour)
	}
	finish := func(tp *tape, wait time.Duration) {
		starts(tp)
		tp.ends("a-0", 0)
		tp.ends("a-1", 0)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			s.Active = 0
			succeededList(s, "a-0", "a-1")
			setCondition(s, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, tp.now)
		})
		releasesBoth(tp)
		counts(tp)
		tp.wait(time.Hour)
		putsBack(tp)
		tp.wait(wait)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { setCondition(s, batchv1.JobComplete, "", tp.now) })
	}
	runStreams(t, map[string]streamCase{
		"recorded once more": {play: func(tp *tape) { counted(tp); putsBack(tp); records(tp, "a-0") }},
		"recorded twice more": {want: []string{"I2"}, play: func(tp *tape) {
			counted(tp)
			putsBack(tp)
			records(tp, "a-0")
			tp.release(executorA, "a-0")
			counts(tp)
			records(tp, "a-0")
		}},
		"other labels make no pod look uncounted": {want: []string{"I2"}, play: func(tp *tape) {
			counted(tp)
			tp.edit(user, "a-0", func(pod *corev1.Pod) { pod.Labels = map[string]string{"job": "a", "x": "y"} })
			records(tp, "a-0")
		}},
		"a pod too many, after a success that counts again": {play: func(tp *tape) {
			succeed(tp)
			putsBack(tp)
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
		}},
		"no pod too many, after a success": {want: []string{"I1", "deletion"}, play: func(tp *tape) {
			succeed(tp)
			tp.release(executorA, "a-1")
			tp.deletes(executorA, "a-1")
		}},
		"Complete, and the finalizer was put back a moment ago": {play: func(tp *tape) { finish(tp, time.Second) }},
		"Complete, and the finalizer was put back long ago":     {want: []string{"I4"}, play: func(tp *tape) { finish(tp, time.Hour) }},
	})
}

// A pod that counts once more may decide the Job, also if it loses its finalizer again while the
// status that records it is on its way.
func TestVerdictsAfterARevival(t *testing.T) {
	three := sized(3, 2)
	fail := func(tp *tape, revive func()) {
		starts(tp, three, func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(1)) })
		fails(tp, "a-0")
		counts(tp)
		revive()
		recordsWithVerdict(tp)
	}
	runStreams(t, map[string]streamCase{
		"a failure that counts again fails the Job, and lost its finalizer a moment ago": {play: func(tp *tape) {
			fail(tp, func() { putsBack(tp); tp.release(user, "a-0") })
		}},
		"a success that counts again completes the Job when it is counted": {play: running(func(tp *tape) {
			countsSuccess(tp)
			tp.release(executorA, "a-1")
			tp.deletes(user, "a-1")
			putsBack(tp)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { succeededList(s, "a-0") })
			tp.release(executorA, "a-0")
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
				s.Succeeded, s.Active, s.UncountedTerminatedPods = 2, 0, &batchv1.UncountedTerminatedPods{}
				setCondition(s, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, tp.now)
			})
		})},
		"a failure that counts once fails no Job": {want: []string{"I2", "verdict"}, play: func(tp *tape) { fail(tp, func() {}) }},
	})
}

// A pod that was counted, and has the finalizer again, counts once more. An executor need
// not know that at once.
func TestCreationsAfterARevival(t *testing.T) {
	create := func(tp *tape, wait time.Duration, then ...func(*corev1.Pod)) {
		starts(tp, sized(3, 2))
		countsSuccess(tp)
		putsBack(tp)
		for _, change := range then {
			tp.edit("webhook", "a-0", change)
		}
		tp.wait(wait)
		tp.pod(executorA, "job-a", "a-2", noIndex)
	}
	runStreams(t, map[string]streamCase{
		"the finalizer was put back a moment ago": {play: func(tp *tape) { create(tp, time.Second) }},
		"the finalizer was put back long ago":     {want: []string{"I6"}, play: func(tp *tape) { create(tp, time.Hour) }},
		"the Job has lost the pod since": {play: func(tp *tape) {
			create(tp, time.Hour, func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "of another" })
		}},
	})
}

// A pod that ran when its Job failed counts as failed, however it ends. A pod that had
// ended before does not.
func TestRanOn(t *testing.T) {
	failing := func(tp *tape) {
		starts(tp, policyOn(1, batchv1.PodFailurePolicyActionIgnore), noRetries)
		tp.ends("a-0", 2)
		tp.wait(time.Hour)
	}
	announce := func(tp *tape) {
		recordsWithVerdict(tp)
		tp.wait(time.Hour)
	}
	runStreams(t, map[string]streamCase{
		"it ended after the verdict, long ago": {play: func(tp *tape) {
			failing(tp)
			announce(tp)
			tp.ends("a-1", 1)
			tp.wait(time.Hour)
			records(tp, "a-0", "a-1")
		}},
		"it ended before the verdict, long ago": {want: []string{"I2"}, play: func(tp *tape) {
			failing(tp)
			tp.ends("a-1", 1)
			tp.wait(5 * time.Minute)
			announce(tp)
			records(tp, "a-0", "a-1")
		}},
	})
}

// A recorded pod may run again, because its node was given up and is back. As long as it has the
// finalizer, it is counted only when it ends again.
func TestRunsAgain(t *testing.T) {
	again := func(tp *tape) {
		starts(tp)
		tp.ends("a-0", 1)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 1; failedList(s, "a-0") })
		tp.edit(kubelet, "a-0", func(pod *corev1.Pod) { pod.Status = corev1.PodStatus{Phase: corev1.PodRunning} })
		tp.status(executorA, "job-a", active(2))
	}
	runStreams(t, map[string]streamCase{
		"with the finalizer": {play: rests(again)},
		"without the finalizer": {want: []string{"status"}, play: rests(func(tp *tape) {
			again(tp)
			tp.release(user, "a-0")
		})},
		"it has ended again": {want: []string{"status", "status", "liveness", "status"}, play: rests(func(tp *tape) {
			again(tp)
			tp.ends("a-0", 1)
		})},
	})
}

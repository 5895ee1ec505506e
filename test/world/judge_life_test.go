package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestWholeLife plays Jobs from their creation to their end, without a breach.
func TestWholeLife(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"two pods succeed": {play: func(tp *tape) {
			tp.judge.faultsEnded(tp.now)
			starts(tp, tp.job("a"))
			completes(tp, "job-a")
			tp.wait(time.Hour)
			tp.judge.look(tp.now)
		}},
		"a pod fails and is replaced": {play: func(tp *tape) {
			tp.judge.faultsEnded(tp.now)
			starts(tp, tp.job("a"))
			fails(tp, "job-a", "a-0")
			tp.wait(10 * time.Second)
			tp.pod(executorA, "job-a", "a-2", noIndex)
			counts(tp, "job-a")
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 2 })
			tp.wait(time.Hour)
			tp.judge.look(tp.now)
		}},
	})
}

// expires plays a Job to its end, and checks it this long after its time to live was over.
func expires(tp *tape, after time.Duration) {
	starts(tp, tp.job("a", func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = ptr(int32(0)) }))
	completes(tp, "job-a")
	tp.judge.faultsEnded(tp.now)
	tp.wait(after)
	tp.judge.look(tp.now)
}

// starts creates the two pods of a Job and writes that in its status.
func starts(tp *tape, job types.UID) {
	tp.pod(executorA, job, "a-0", noIndex)
	tp.pod(executorA, job, "a-1", noIndex)
	tp.status(executorA, job, func(s *batchv1.JobStatus) {
		s.Active, s.StartTime = 2, ptr(metav1.NewTime(tp.now))
	})
}

// fails lets a pod fail, records it, counts those before, and releases it.
func fails(tp *tape, job, pod types.UID) {
	tp.ends(pod, 1)
	tp.status(executorA, job, func(s *batchv1.JobStatus) {
		s.Active--
		s.Failed += int32(len(s.UncountedTerminatedPods.Failed))
		failedList(s, pod)
	})
	tp.release(executorA, pod)
}

// counts moves what the lists hold into the counters.
func counts(tp *tape, job types.UID) {
	tp.status(executorA, job, func(s *batchv1.JobStatus) {
		s.Succeeded += int32(len(s.UncountedTerminatedPods.Succeeded))
		s.Failed += int32(len(s.UncountedTerminatedPods.Failed))
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	})
}

// completes lets both pods succeed and plays the Job to its end.
func completes(tp *tape, job types.UID) {
	tp.ends("a-0", 0)
	tp.ends("a-1", 0)
	tp.status(executorA, job, func(s *batchv1.JobStatus) {
		s.Active = 0
		succeededList(s, "a-0", "a-1")
		setCondition(s, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, tp.now)
	})
	tp.release(executorA, "a-0")
	tp.release(executorA, "a-1")
	tp.status(executorA, job, func(s *batchv1.JobStatus) {
		s.Succeeded, s.UncountedTerminatedPods = 2, &batchv1.UncountedTerminatedPods{}
		s.CompletionTime = ptr(metav1.NewTime(tp.now))
		setCondition(s, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, tp.now)
	})
	tp.event(executorA, job, "Completed", 1)
}

// A Job that stands still for a while is found, even if something gets it going in the end.
func TestLooks(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"one pod runs of two, for a while": {want: []string{"liveness"}, play: func(tp *tape) {
			starts(tp, tp.job("a"))
			fails(tp, "job-a", "a-0")
			counts(tp, "job-a")
			tp.judge.faultsEnded(tp.now)
			tp.wait(lookTime)
			tp.judge.look(tp.now)
			tp.pod(executorA, "job-a", "a-2", noIndex)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 2 })
			tp.wait(lookTime)
			tp.judge.look(tp.now)
		}},
		"one pod runs of two, and the executor is at work": {play: func(tp *tape) {
			starts(tp, tp.job("a"))
			fails(tp, "job-a", "a-0")
			tp.judge.faultsEnded(tp.now)
			tp.wait(lookTime)
			counts(tp, "job-a")
			tp.judge.look(tp.now)
		}},
		"a time to live over for minutes": {want: []string{"ttl"}, play: func(tp *tape) { expires(tp, lookTime) }},
		"a time to live over for minutes, after a clock was behind": {play: func(tp *tape) {
			tp.judge.clocksSet(tp.now, -time.Hour)
			expires(tp, lookTime)
		}},
		"a time to live over for long, after a clock was behind": {want: []string{"ttl"}, play: func(tp *tape) {
			tp.judge.clocksSet(tp.now, -time.Hour)
			expires(tp, 3*lookTime)
		}},
	})
}

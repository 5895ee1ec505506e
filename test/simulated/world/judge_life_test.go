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
			starts(tp)
			completes(tp)
			tp.wait(time.Hour)
			tp.judge.look(tp.now)
		}},
		"a pod fails and is replaced": {play: func(tp *tape) {
			tp.judge.faultsEnded(tp.now)
			starts(tp)
			fails(tp, "a-0")
			tp.wait(10 * time.Second)
			tp.pod(executorA, "job-a", "a-2", noIndex)
			counts(tp)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 2 })
			tp.wait(time.Hour)
			tp.judge.look(tp.now)
		}},
	})
}

// expires plays a Job to its end, and checks it this long after its time to live was over.
func expires(tp *tape, after time.Duration) {
	looks(after, func(tp *tape) { starts(tp, timeToLive(0)); completes(tp) })(tp)
}

// starts creates Job a and its two pods, and writes that in its status.
func starts(tp *tape, changes ...func(*batchv1.Job)) {
	tp.job("a", changes...)
	startsPods(tp)
}

func startsPods(tp *tape) {
	tp.pod(executorA, "job-a", "a-0", noIndex)
	tp.pod(executorA, "job-a", "a-1", noIndex)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Active, s.StartTime = 2, new(metav1.NewTime(tp.now))
	})
}

// running begins a tape with Job a, whose two pods run.
func running(play func(*tape)) func(*tape) {
	return func(tp *tape) {
		starts(tp)
		play(tp)
	}
}

// records lists pods as failed in the Job's status.
func records(tp *tape, uids ...types.UID) {
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { failedList(s, uids...) })
}

// completesIndex0 lets a pod of index 0 succeed, and writes that in the Job's status.
func completesIndex0(tp *tape) {
	tp.job("a", indexedJob(2))
	tp.pod(executorA, "job-a", "a-0", 0)
	tp.ends("a-0", 0)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes, s.Succeeded = "0", 1 })
}

// fails lets a pod fail, records it, counts those before, and releases it.
func fails(tp *tape, pod types.UID) {
	tp.ends(pod, 1)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Active = max(0, s.Active-1)
		s.Failed += int32(len(s.UncountedTerminatedPods.Failed))
		failedList(s, pod)
	})
	tp.release(executorA, pod)
}

func releasesBoth(tp *tape) {
	tp.release(executorA, "a-0")
	tp.release(executorA, "a-1")
}

// counts moves what the lists hold into the counters.
func counts(tp *tape) {
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Succeeded += int32(len(s.UncountedTerminatedPods.Succeeded))
		s.Failed += int32(len(s.UncountedTerminatedPods.Failed))
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	})
}

// completes lets both pods succeed and plays the Job to its end.
func completes(tp *tape) {
	tp.ends("a-0", 0)
	tp.ends("a-1", 0)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Active = 0
		succeededList(s, "a-0", "a-1")
		setCondition(s, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, tp.now)
	})
	releasesBoth(tp)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.Succeeded, s.UncountedTerminatedPods = 2, &batchv1.UncountedTerminatedPods{}
		s.CompletionTime = new(metav1.NewTime(tp.now))
		setCondition(s, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, tp.now)
	})
	tp.event(executorA, "job-a", "Completed", 1)
}

// A Job that stands still for a while is found, even if something gets it going in the end.
func TestLooks(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"one pod runs of two, for a while": {want: []string{"liveness"}, play: running(func(tp *tape) {
			fails(tp, "a-0")
			counts(tp)
			tp.judge.faultsEnded(tp.now)
			tp.wait(lookTime)
			tp.judge.look(tp.now)
			tp.pod(executorA, "job-a", "a-2", noIndex)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 2 })
			tp.wait(lookTime)
			tp.judge.look(tp.now)
		})},
		"one pod runs of two, and the executor is at work": {play: running(func(tp *tape) {
			fails(tp, "a-0")
			tp.judge.faultsEnded(tp.now)
			tp.wait(lookTime)
			counts(tp)
			tp.judge.look(tp.now)
		})},
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

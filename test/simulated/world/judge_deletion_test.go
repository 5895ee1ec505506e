package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// A pod that ended by itself stays after the end of its Job, with its logs. It may be deleted
// only if its end was to be asked for while it ran, and if the executor need not know that it
// has ended.
func TestDeletionOfEndedPods(t *testing.T) {
	completed := func(tp *tape) {
		starts(tp)
		completes(tp)
	}
	tooMany := func(tp *tape) {
		tp.job("a", parallel(1))
		tp.pod(executorA, "job-a", "a-0", noIndex)
		tp.pod(user, "job-a", "a-1", noIndex)
		completes(tp)
	}
	fails := func(tp *tape, wait time.Duration) {
		starts(tp, noRetries)
		tp.ends("a-0", 1)
		recordsWithVerdict(tp)
		tp.ends("a-1", 1)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 0; failedList(s, "a-0", "a-1") })
		releasesBoth(tp)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			s.Failed, s.UncountedTerminatedPods = 2, &batchv1.UncountedTerminatedPods{}
			setCondition(s, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, tp.now)
		})
		tp.wait(wait)
	}
	broken := []string{"deletion"}
	runStreams(t, map[string]streamCase{
		"of a complete Job, by another executor, at once": {want: broken, play: func(tp *tape) {
			completed(tp)
			tp.deletes(executorB, "a-0")
		}},
		"of a complete Job, by the executor that counted it": {want: broken, play: func(tp *tape) {
			tooMany(tp)
			tp.deletes(executorA, "a-0")
		}},
		"of a complete Job with more pods than wanted, at once": {play: func(tp *tape) {
			tooMany(tp)
			tp.deletes(executorB, "a-0")
		}},
		"of a complete Job with more pods than wanted, long after": {want: broken, play: func(tp *tape) {
			tooMany(tp)
			tp.wait(time.Hour)
			tp.deletes(executorB, "a-0")
		}},
		"of a failed Job, by another executor, at once":    {play: func(tp *tape) { fails(tp, 0); tp.deletes(executorB, "a-1") }},
		"of a failed Job, by the executor that counted it": {want: broken, play: func(tp *tape) { fails(tp, 0); tp.deletes(executorA, "a-1") }},
		"of a failed Job, long after":                      {want: broken, play: func(tp *tape) { fails(tp, time.Hour); tp.deletes(executorB, "a-1") }},
		"of a complete Job, by the garbage collector":      {play: func(tp *tape) { completed(tp); tp.deletes(collector, "a-0") }},
	})
}

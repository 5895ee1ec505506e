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

// event writes an event of an executor about a Job.
func (tp *tape) event(by string, job types.UID, reason string, count int32) {
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "event", UID: types.UID(fmt.Sprint("event-", tp.version))}, Reason: reason, Count: count,
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Name: "a", UID: job},
	}
	tp.commit(by, "create", "events", "", e, e)
}

// failed plays a Job that an executor declares failed, and then some more.
func failed(more func(*tape)) func(*tape) {
	return rests(func(tp *tape) {
		tp.ends(tp.pod(executorA, tp.job("a", noRetries, sized(1, 1)), "a-0", noIndex), 1)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			s.Active = 0
			failedList(s, "a-0")
			setCondition(s, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, tp.now)
		})
		tp.release(executorA, "a-0")
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			s.Failed, s.UncountedTerminatedPods = 1, &batchv1.UncountedTerminatedPods{}
			setCondition(s, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, tp.now)
		})
		more(tp)
	})
}

// There is one event about the end of a Job.
func TestTheEndIsTold(t *testing.T) {
	tell := func(tp *tape) { tp.event(executorA, "job-a", batchv1.JobReasonBackoffLimitExceeded, 1) }
	runStreams(t, map[string]streamCase{
		"once":                                   {play: failed(tell)},
		"never":                                  {want: []string{"event"}, play: failed(func(*tape) {})},
		"twice":                                  {want: []string{"event"}, play: failed(func(tp *tape) { tell(tp); tell(tp) })},
		"twice in one event":                     {want: []string{"event"}, play: failed(func(tp *tape) { tp.event(executorA, "job-a", batchv1.JobReasonBackoffLimitExceeded, 2) })},
		"by another reason":                      {want: []string{"event"}, play: failed(func(tp *tape) { tp.event(executorA, "job-a", "Completed", 1) })},
		"never, because the executor died":       {play: failed(func(tp *tape) { tp.judge.died(executorA) })},
		"never, because another executor died":   {want: []string{"event"}, play: failed(func(tp *tape) { tp.judge.died(executorB) })},
		"never, because the event failed":        {play: failed(func(tp *tape) { tp.judge.untold(executorA, tp.now) })},
		"never, and another event failed before": {want: []string{"event"}, play: failed(func(tp *tape) { tp.judge.untold(executorA, tp.now.Add(-time.Second)) })},
		"never, because somebody else declared the Job's end": {play: rests(func(tp *tape) { finishesOther(tp) })},
	})
}

// The executor that wrote the end sends the event. If two executors may take the same end for
// their own, both send it.
func TestWhoTellsTheEnd(t *testing.T) {
	tells := func(tp *tape, by ...string) {
		for _, executor := range by {
			tp.event(executor, "job-a", batchv1.JobReasonBackoffLimitExceeded, 1)
		}
	}
	noAnswer := func(tp *tape, by string, ago time.Duration) {
		tp.judge.unanswered(by, types.NamespacedName{Namespace: "ns", Name: "a"}, tp.now.Add(-ago))
	}
	runStreams(t, map[string]streamCase{
		"another executor":          {want: []string{"event"}, play: failed(func(tp *tape) { tells(tp, executorB) })},
		"both":                      {want: []string{"event"}, play: failed(func(tp *tape) { tells(tp, executorA, executorB) })},
		"both, one got no answer":   {play: failed(func(tp *tape) { noAnswer(tp, executorB, 0); tells(tp, executorA, executorB) })},
		"both, first the other one": {play: failed(func(tp *tape) { noAnswer(tp, executorB, 0); tells(tp, executorB, executorA) })},
		"no answer before the end":  {want: []string{"event"}, play: failed(func(tp *tape) { noAnswer(tp, executorB, time.Second); tells(tp, executorA, executorB) })},
		"the writer got no answer":  {want: []string{"event"}, play: failed(func(tp *tape) { noAnswer(tp, executorA, 0); tells(tp, executorA, executorB) })},
		"one that got none, twice":  {want: []string{"event"}, play: failed(func(tp *tape) { noAnswer(tp, executorB, 0); tells(tp, executorB, executorB) })},
		"no answer of another Job's": {want: []string{"event"}, play: failed(func(tp *tape) {
			tp.judge.unanswered(executorB, types.NamespacedName{Namespace: "ns", Name: "b"}, tp.now)
			tells(tp, executorA, executorB)
		})},
	})
}

// finishesOther lets somebody else complete a Job.
func finishesOther(tp *tape) {
	tp.job("a", foreign)
	tp.status(others, "job-a", func(s *batchv1.JobStatus) { setCondition(s, batchv1.JobComplete, "", tp.now) })
}

// A first status that only says that a Job is suspended waits for a moment.
func TestTheFirstStatusOfASuspendedJob(t *testing.T) {
	says := func(tp *tape, changes ...func(*batchv1.JobStatus)) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			setCondition(s, batchv1.JobSuspended, "JobSuspended", tp.now)
			for _, change := range changes {
				change(s)
			}
		})
	}
	runStreams(t, map[string]streamCase{
		"at once": {want: []string{"status"}, play: func(tp *tape) { tp.job("a", suspend); says(tp) }},
		"after the delay": {play: func(tp *tape) {
			tp.job("a", suspend)
			tp.wait(firstStatusDelay)
			says(tp)
		}},
		"at once, of a Job that was suspended a moment ago": {play: func(tp *tape) {
			tp.job("a")
			tp.spec(suspend)
			says(tp)
		}},
		"at once, of a Job with a pod": {play: func(tp *tape) {
			tp.pod(user, tp.job("a", suspend), "a-0", noIndex)
			says(tp, func(s *batchv1.JobStatus) { s.Active = 1 })
		}},
		"at once, by an engine of another contract": {play: func(tp *tape) {
			tp.job("a", suspend)
			tp.judge.disturbed(tp.now)
			says(tp)
		}},
	})
}

// At most one event tells that a run was started, by the executor that started it.
func TestTheStartIsTold(t *testing.T) {
	tell := func(tp *tape, by string) {
		e := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "event", UID: types.UID(fmt.Sprint("event-", tp.version))}, Reason: "SuccessfulCreate",
			Message: "(combined from similar events): Created job c-1", InvolvedObject: corev1.ObjectReference{Kind: "CronJob", Name: "c", UID: "cron"},
		}
		tp.commit(by, "create", "events", "", e, e)
	}
	play := func(then func(*tape)) func(*tape) {
		return func(tp *tape) {
			tp.cron()
			tp.wait(time.Minute)
			tp.run("c-1", tp.now)
			then(tp)
		}
	}
	noAnswer := func(tp *tape, namespace string) {
		tp.judge.unanswered(executorB, types.NamespacedName{Namespace: namespace}, tp.now)
	}
	runStreams(t, map[string]streamCase{
		"once":       {play: play(func(tp *tape) { tell(tp, executorA) })},
		"twice":      {want: []string{"event"}, play: play(func(tp *tape) { tell(tp, executorA); tell(tp, executorA) })},
		"by another": {want: []string{"event"}, play: play(func(tp *tape) { tell(tp, executorB) })},
		"by another whose creation got no answer":                {play: play(func(tp *tape) { noAnswer(tp, "ns"); tell(tp, executorB) })},
		"by another whose creation in a namespace got no answer": {want: []string{"event"}, play: play(func(tp *tape) { noAnswer(tp, "other"); tell(tp, executorB) })},
	})
}

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor"
)

// contested begins a tape with a Job on which a second controller works while an executor
// that stands down watches.
func contested(tp *tape) *batchv1.Job {
	tp.judge.standDown = true
	tp.judge.second = func(by string) bool { return by == others }
	uid := tp.job("a")
	tp.judge.asked(executorA, uid, tp.now)
	tp.wait(time.Second)
	tp.pod(others, uid, "theirs", noIndex)
	return tp.stored[uid].(*batchv1.Job)
}

func TestWhatIsSaidOfASecondController(t *testing.T) {
	event := func(tp *tape, job *batchv1.Job, count int32) {
		e := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "event", UID: "event"}, Reason: executor.SecondControllerEventReason, Count: count,
			InvolvedObject: corev1.ObjectReference{Name: job.Name, UID: job.UID},
		}
		tp.commit(executorA, "create", "events", "", e, e)
	}
	runStreams(t, map[string]streamCase{
		"once": {play: func(tp *tape) {
			job := contested(tp)
			tp.judge.says(executorA, job.UID, tp.now)
			event(tp, job, 1)
			tp.wait(time.Hour)
			tp.judge.judgeUnsaid(tp.now, []string{executorA})
		}},
		"never": {play: func(tp *tape) {
			contested(tp)
			tp.wait(time.Hour)
			tp.judge.judgeUnsaid(tp.now, []string{executorA})
		}, want: []string{"second"}},
		"never, by an executor that began later": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(time.Minute)
			tp.judge.asked(executorB, job.UID, tp.now)
			tp.wait(time.Hour)
			tp.judge.judgeUnsaid(tp.now, []string{executorB})
		}},
		"twice": {play: func(tp *tape) {
			job := contested(tp)
			tp.judge.says(executorA, job.UID, tp.now)
			tp.wait(time.Minute)
			tp.judge.says(executorA, job.UID, tp.now)
		}, want: []string{"second"}},
		"twice in one event": {play: func(tp *tape) { event(tp, contested(tp), 2) }, want: []string{"second"}},
		"of a Job that was deleted a moment before": {play: func(tp *tape) {
			contested(tp)
			touchedWhenGone(tp, 0)
		}},
		"of a Job that was deleted long before": {play: func(tp *tape) {
			contested(tp)
			touchedWhenGone(tp, time.Hour)
		}, want: []string{"second"}},
		"of a Job that nobody touched": {play: func(tp *tape) {
			contested(tp)
			tp.judge.says(executorA, tp.job("b"), tp.now)
		}, want: []string{"second"}},
		"in an event of such a Job": {play: func(tp *tape) {
			contested(tp)
			event(tp, tp.stored[tp.job("b")].(*batchv1.Job), 1)
		}, want: []string{"second"}},
	})
}

// touchedWhenGone deletes another Job. Some time later the second controller creates a pod of
// it, and the executor says so.
func touchedWhenGone(tp *tape, later time.Duration) {
	b := tp.job("b")
	tp.removes(user, "jobs", b)
	tp.wait(later)
	tp.pod(others, b, "late", noIndex)
	tp.judge.says(executorA, b, tp.now)
}

func TestStandingDown(t *testing.T) {
	counts := func(s *batchv1.JobStatus) { s.Active = 1 }
	runStreams(t, map[string]streamCase{
		"a write before the executor must have noticed": {play: func(tp *tape) { tp.status(executorA, contested(tp).UID, counts) }},
		"a write after that": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(2 * time.Minute)
			tp.status(executorA, job.UID, counts)
		}, want: []string{"second"}},
		"a pod created after that": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(2 * time.Minute)
			tp.pod(executorA, job.UID, "ours", noIndex)
		}, want: []string{"second"}},
		"a write of another Job": {play: func(tp *tape) {
			contested(tp)
			tp.wait(2 * time.Minute)
			tp.status(executorA, tp.job("b"), counts)
		}},
		"a write when the other has been silent for long": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(executor.SecondControllerQuiet + time.Second)
			tp.status(executorA, job.UID, counts)
		}},
		"a write when it has been silent about this Job only": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(executor.SecondControllerQuiet / 2)
			tp.pod(others, tp.job("b"), "another of theirs", noIndex)
			tp.wait(executor.SecondControllerQuiet/2 + time.Minute)
			tp.status(executorA, job.UID, counts)
		}, want: []string{"second"}},
		"a write of an executor that began later": {play: func(tp *tape) {
			job := contested(tp)
			tp.wait(time.Minute)
			tp.judge.asked(executorB, job.UID, tp.now)
			tp.wait(time.Minute)
			tp.status(executorB, job.UID, counts)
		}},
		"no look at the Job while it is left alone": {play: looks(executor.SecondControllerQuiet, func(tp *tape) { contested(tp) })},
		"no look at the Job ever after": {
			want: []string{"status", "status", "liveness"},
			play: looks(executor.SecondControllerQuiet+settles+2*time.Minute, func(tp *tape) { contested(tp) }),
		},
		"a write where nobody is to stand down": {play: func(tp *tape) {
			job := contested(tp)
			tp.judge.standDown = false
			tp.wait(2 * time.Minute)
			tp.status(executorA, job.UID, counts)
		}},
	})
}

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/podstatus"
)

// Pod a-1 of Job a has failed the Job three minutes after a node has taken pod a-0. Then a-0 is told to end, and deleted only if it does not.
func TestPodsThatAreEnded(t *testing.T) {
	asks := func(job *batchv1.Job) {
		job.Spec.BackoffLimit = new(int32(0))
		job.Annotations = map[string]string{wire.Policy: "{job: {whenJobFails: EndPods}}"}
	}
	begins := func(tp *tape, changes ...func(*batchv1.Job)) {
		tp.job("a", append(changes, parallel(2))...)
		main := func(pod *corev1.Pod) { pod.Spec.Containers = []corev1.Container{{Name: "main"}} }
		tp.pod(executorA, "job-a", "a-0", 0, main)
		tp.pod(executorA, "job-a", "a-1", 1, main)
	}
	taken := func(tp *tape) {
		tp.edit(kubelet, "a-0", func(pod *corev1.Pod) { podstatus.SetRunning(pod, true, tp.now) })
	}
	fails := func(tp *tape) {
		tp.wait(3 * time.Minute)
		tp.ends("a-1", 1)
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
			failedList(s, "a-1")
			setCondition(s, batchv1.JobFailureTarget, "BackoffLimitExceeded", tp.now)
		})
	}
	tells := func(seconds int64) func(*tape) {
		return func(tp *tape) {
			tp.edit(executorA, "a-0", func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = &seconds })
		}
	}
	deletes := func(tp *tape) { tp.deletes(executorA, "a-0") }
	after := func(d time.Duration) func(*tape) { return func(tp *tape) { tp.wait(d) } }
	asked := func(tp *tape) { begins(tp, asks) }
	play := func(steps ...func(*tape)) func(*tape) {
		return func(tp *tape) {
			for _, step := range steps {
				step(tp)
			}
		}
	}
	broken := []string{"options"}
	runStreams(t, map[string]streamCase{
		"it is told to end":                        {play: play(asked, taken, fails, tells(180))},
		"it is told to end before the verdict":     {want: broken, play: play(asked, taken, after(3*time.Minute), tells(180))},
		"it is told to end much later":             {want: broken, play: play(asked, taken, fails, tells(210))},
		"it is told to end, and no node has it":    {want: broken, play: play(asked, fails, tells(180))},
		"it is told to end, and nobody asks":       {want: broken, play: play(func(tp *tape) { begins(tp, func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(0)) }) }, taken, fails, tells(180))},
		"it is deleted":                            {want: broken, play: play(asked, taken, fails, deletes)},
		"it is deleted, and no node has it":        {play: play(asked, fails, deletes)},
		"it is told, and deleted soon":             {want: broken, play: play(asked, taken, fails, tells(180), after(58*time.Second), deletes)},
		"it is told, does not end, and is deleted": {play: play(asked, taken, fails, tells(180), after(time.Minute), deletes)},
		"it is not told for an hour, and deleted":  {play: play(asked, taken, fails, after(time.Hour), deletes)},
	})
}

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/podstatus"
)

// Pods that do not start are ended when their time is over, as the options say, and not before.
func TestPodsThatNeverStart(t *testing.T) {
	asks := func(action string) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Annotations = map[string]string{wire.Policy: `{"job": {"neverStarted": [{"problem": "Image", "afterSeconds": 60, "action": "` + action + `"}]}}`}
		}
	}
	// waits lets pod a-0 of Job a wait for something, and another pod run.
	waits := func(tp *tape, problem string, d time.Duration, changes ...func(*batchv1.Job)) {
		tp.job("a", append(changes, parallel(2))...)
		tp.pod(executorA, "job-a", "a-0", 0, func(pod *corev1.Pod) { pod.Spec.Containers = []corev1.Container{{Name: "main"}} })
		tp.pod(executorA, "job-a", "a-1", 1)
		tp.edit(kubelet, "a-0", func(pod *corev1.Pod) { setProblem(pod, problem, tp.now) })
		tp.wait(d)
	}
	runs := func(tp *tape) {
		tp.edit(kubelet, "a-0", func(pod *corev1.Pod) { podstatus.SetRunning(pod, true, tp.now) })
	}
	deletes := func(problem string, d time.Duration, job ...func(*batchv1.Job)) func(*tape) {
		return func(tp *tape) { waits(tp, problem, d, job...); tp.deletes(executorA, "a-0") }
	}
	verdict := func(tp *tape) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { setCondition(s, batchv1.JobFailureTarget, "PodNeverStarted", tp.now) })
	}
	failsIndex := func(tp *tape) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.FailedIndexes = new("0") })
	}
	perIndex := func(job *batchv1.Job) { indexedJob(2)(job); job.Spec.BackoffLimitPerIndex = new(int32(3)) }
	broken, noVerdict := []string{"deletion"}, []string{"verdict"}
	runStreams(t, map[string]streamCase{
		"it is deleted in time":            {play: deletes("Image", time.Minute, asks("Count"))},
		"it is deleted too early":          {want: broken, play: deletes("Image", 58*time.Second, asks("Count"))},
		"it is deleted for another reason": {want: broken, play: deletes("Configuration", time.Hour, asks("Count"))},
		"its Job does not ask":             {want: broken, play: deletes("Image", time.Hour)},
		"it is deleted before the verdict": {want: broken, play: deletes("Image", time.Hour, asks("FailJob"))},
		"it is deleted after its start, which the executor has not seen": {want: broken, play: func(tp *tape) {
			waits(tp, "Image", time.Minute, asks("Count"))
			runs(tp)
			tp.deletes(executorA, "a-0")
		}},
		"its Job fails in time":   {play: func(tp *tape) { waits(tp, "Image", time.Minute, asks("FailJob")); verdict(tp) }},
		"its Job fails too early": {want: noVerdict, play: func(tp *tape) { waits(tp, "Image", 58*time.Second, asks("FailJob")); verdict(tp) }},
		"its Job fails after its start, which the executor has not seen": {play: func(tp *tape) {
			waits(tp, "Image", time.Minute, asks("FailJob"))
			runs(tp)
			verdict(tp)
		}},
		"its Job fails long after its start": {want: noVerdict, play: func(tp *tape) {
			waits(tp, "Image", 50*time.Second, asks("FailJob"))
			runs(tp)
			tp.wait(time.Hour)
			verdict(tp)
		}},
		"its index fails in time":   {play: func(tp *tape) { waits(tp, "Image", time.Minute, perIndex, asks("FailIndex")); failsIndex(tp) }},
		"its index fails too early": {want: noVerdict, play: func(tp *tape) { waits(tp, "Image", 58*time.Second, perIndex, asks("FailIndex")); failsIndex(tp) }},
		"it waits for ever": {want: []string{"liveness"}, play: rests(func(tp *tape) {
			waits(tp, "Image", time.Minute, asks("Count"))
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active, s.StartTime = 2, new(metav1.NewTime(tp.now)) })
		})},
	})
}

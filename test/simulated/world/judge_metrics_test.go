package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// What executors tell in metrics is what is stored, unless something happened a moment ago.
func TestMetricsAreComparedWithWhatIsStored(t *testing.T) {
	tells := func(after time.Duration, got reading) func(*tape) {
		return func(tp *tape) {
			starts(tp)
			tp.wait(after)
			tp.judge.judgeMetrics(executorA, got, tp.now)
		}
	}
	ten := 10 * time.Minute
	runStreams(t, map[string]streamCase{
		"as it is":                     {play: tells(ten, reading{managedJobs: 1, withoutProgress: 600})},
		"no Job":                       {want: []string{"metrics"}, play: tells(ten, reading{withoutProgress: 600})},
		"two Jobs":                     {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 2, withoutProgress: 600})},
		"progress, and there is none":  {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 1})},
		"no progress since before":     {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 1, withoutProgress: 700})},
		"a pod that cannot start":      {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 1, withoutProgress: 600, hinderedPods + "Unschedulable": 1})},
		"no retry left, and none used": {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 1, withoutProgress: 600, withoutRetries: 1})},
		"a run, and there is none":     {want: []string{"metrics"}, play: tells(ten, reading{managedJobs: 1, withoutProgress: 600, nextRunTime: 1})},
		"anything a moment after that": {play: tells(5*time.Second, reading{managedJobs: 7})},
		"one retry, and all are used up": {want: []string{"metrics"}, play: func(tp *tape) {
			starts(tp, func(job *batchv1.Job) { job.Spec.BackoffLimit = new(int32(1)) })
			fails(tp, "a-0")
			counts(tp)
			tp.wait(ten)
			tp.judge.judgeMetrics(executorA, reading{managedJobs: 1, withoutProgress: 600}, tp.now)
		}},
		"a pod cannot start, and is not told": {want: []string{"metrics"}, play: func(tp *tape) {
			starts(tp)
			tp.edit(kubelet, "a-0", func(p *corev1.Pod) { setProblem(p, "Unschedulable", tp.now) })
			tp.wait(ten)
			tp.judge.judgeMetrics(executorA, reading{managedJobs: 1, withoutProgress: 600}, tp.now)
		}},
	})
}

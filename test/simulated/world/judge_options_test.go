package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

// A Job fails at its deadline to start if no pod has run since it started or last resumed. The
// status has that time in whole seconds, so a pod may have run in the same second and before.
func TestDeadlineToStart(t *testing.T) {
	fails := func(after time.Duration, play func(*tape)) func(*tape) {
		return func(tp *tape) {
			tp.job("a", func(job *batchv1.Job) {
				job.Annotations = map[string]string{wire.Policy: "{job: {startDeadlineSeconds: 60}}"}
			})
			start := tp.now
			begins := func(s *batchv1.JobStatus) { s.StartTime = new(metav1.NewTime(start)) }
			tp.pod(executorA, "job-a", "a-0", noIndex)
			tp.status(executorA, "job-a", begins)
			play(tp)
			tp.wait(after)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
				begins(s)
				setCondition(s, batchv1.JobFailureTarget, "StartDeadlineExceeded", tp.now)
			})
		}
	}
	nothing := func(*tape) {}
	endsOne := func(tp *tape) { tp.ends("a-0", 0); tp.wait(100 * time.Millisecond) }
	again := func(tp *tape) {
		for _, suspend := range []bool{true, false} {
			tp.spec(func(job *batchv1.Job) { job.Spec.Suspend = &suspend })
			tp.wait(100 * time.Millisecond)
		}
	}
	runStreams(t, map[string]streamCase{
		"no pod has run":                                    {play: fails(time.Minute, nothing)},
		"no pod has run, and it is too soon":                {want: []string{"verdict"}, play: fails(59*time.Second, nothing)},
		"a pod has run":                                     {want: []string{"verdict"}, play: fails(time.Minute, endsOne)},
		"a pod has run, and the Job resumed in that second": {play: fails(time.Minute, func(tp *tape) { endsOne(tp); again(tp) })},
		"the Job resumed, and a pod has run":                {want: []string{"verdict"}, play: fails(time.Minute, func(tp *tape) { again(tp); endsOne(tp) })},
	})
}

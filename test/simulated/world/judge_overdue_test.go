package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// A Job that replaces failed pods only has lost the node of pod a-0, and a minute later takes it for failed.
func TestPodsOnLostNodes(t *testing.T) {
	lost := func(wait time.Duration, then func(*tape)) func(*tape) {
		return func(tp *tape) {
			starts(tp, func(job *batchv1.Job) {
				job.Spec.PodReplacementPolicy = new(batchv1.Failed)
				job.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 60}}"}
			})
			tp.deletes(user, "a-0")
			tp.wait(wait)
			then(tp)
		}
	}
	record := func(tp *tape) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active, s.Terminating = 1, new(int32(0)); failedList(s, "a-0") })
	}
	replace := func(tp *tape) { create(tp, "a-2", noIndex) }
	runStreams(t, map[string]streamCase{
		"replaced in time":   {play: lost(time.Minute, replace)},
		"replaced too early": {want: []string{"I6"}, play: lost(59*time.Second, replace)},
		"recorded in time":   {play: lost(time.Minute, record)},
		"recorded too early": {want: []string{"I2"}, play: lost(59*time.Second, record)},
	})
}

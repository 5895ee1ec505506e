package world

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// A Job of four that keeps one finished pod has counted two, a-0 and then a-1.
func TestDeletionOfCountedPods(t *testing.T) {
	counted := func(policy string, then func(*tape)) func(*tape) {
		return func(tp *tape) {
			starts(tp, func(job *batchv1.Job) {
				job.Spec.Completions = new(int32(4))
				job.Annotations = map[string]string{wire.Policy: policy}
			})
			tp.ends("a-0", 0)
			tp.wait(1e9)
			tp.ends("a-1", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 0; succeededList(s, "a-0", "a-1") })
			tp.release(executorA, "a-0")
			tp.release(executorA, "a-1")
			then(tp)
		}
	}
	count := func(tp *tape) {
		tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Succeeded = 2; succeededList(s) })
	}
	deletes := func(pods ...string) func(*tape) {
		return func(tp *tape) {
			count(tp)
			for _, pod := range pods {
				tp.deletes(executorA, types.UID(pod))
			}
		}
	}
	const one = "{job: {keepFinishedPods: {succeeded: 1}}}"
	broken := []string{"deletion"}
	runStreams(t, map[string]streamCase{
		"the older one":           {play: counted(one, deletes("a-0"))},
		"the newer one":           {want: broken, play: counted(one, deletes("a-1"))},
		"both":                    {want: broken, play: counted(one, deletes("a-0", "a-1"))},
		"before it is counted":    {want: broken, play: counted(one, func(tp *tape) { tp.deletes(executorA, "a-0") })},
		"of a Job that keeps all": {want: broken, play: counted("{job: {keepFinishedPods: {failed: 0}}}", deletes("a-0"))},
	})
}

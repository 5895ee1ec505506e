package ttl

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Whatever hangs about the Jobs of one namespace, those of another one are deleted.
func TestNoNamespaceHoldsUpTheOthers(t *testing.T) {
	var jobs []runtime.Object
	for n := range 20 {
		jobs = append(jobs, testJob(func(j *batchv1.Job) { j.Namespace, j.Name, j.UID = "slow", fmt.Sprint("job-", n), fakes.UID(100+n) }))
	}
	client, engine, hang, slow := fake.NewClientset(jobs...), due(ended.Add(time.Minute)), make(chan struct{}), make(chan struct{}, 1)
	answer := engine.Otherwise
	engine.Otherwise = func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetJob().GetNamespace() == "slow" {
			select {
			case slow <- struct{}{}:
			default: // One is enough; a Job may be asked about again when the test ends.
			}
			<-hang
		}
		return answer(req)
	}
	start(t, client, engine)
	t.Cleanup(func() { close(hang) })
	<-slow
	if err := client.Tracker().Add(testJob()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deletion in another namespace", func() bool { return len(deletions(client)) > 0 })
}

package cronjob

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Whatever hangs about the CronJobs of one namespace, those of another one run.
func TestNoNamespaceHoldsUpTheOthers(t *testing.T) {
	var crons []runtime.Object
	for n := range 20 {
		crons = append(crons, testCron(func(c *batchv1.CronJob) { c.Namespace, c.Name, c.UID = "slow", fmt.Sprint("cron-", n), testUID(100+n) }))
	}
	s, hang, slow := newServer(crons...), make(chan struct{}), make(chan struct{}, 1)
	engine := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		if req.GetCronJob().GetNamespace() == "slow" {
			select {
			case slow <- struct{}{}:
			default: // One is enough; a CronJob may be asked about again when the test ends.
			}
			<-hang
		}
		return starting("run")(req)
	}}
	start(t, s, engine)
	t.Cleanup(func() { close(hang) })
	<-slow
	cron := testCron()
	s.Stamp(cron)
	if err := s.Tracker().Add(cron); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a run in another namespace", func() bool { return slices.Contains(s.Done(), "create jobs") })
}

// An owner reference means an object in the same namespace, and anybody may write any UID
// there. So a Job of another namespace is no run, whatever its reference says (invariant I9).
func TestAJobOfAnotherNamespaceIsNoRun(t *testing.T) {
	stranger := func(n int, name string) *batchv1.Job {
		job := testJob(n, name, testUID(1))
		job.Namespace = "other"
		return job
	}
	s, engine := newServer(testCron(), stranger(7, "first")), &script{}
	start(t, s, engine)
	engine.Await(t, 1)
	if _, err := s.BatchV1().Jobs("other").Create(t.Context(), stranger(8, "second"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BatchV1().Jobs(namespace).Create(t.Context(), testJob(9, "run", testUID(1)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	asked := engine.Await(t, 2)
	if jobs := asked.GetJobs(); len(jobs) != 1 || !bytes.Equal(jobs[0].GetUid(), uidBytes(t, 9)) {
		t.Errorf("the Jobs of the request are %v, want the one of the CronJob's namespace", jobs)
	}
}

package cronjob

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Whatever hangs about the CronJobs of one namespace, those of another one run.
func TestNoNamespaceHoldsUpTheOthers(t *testing.T) {
	var crons []runtime.Object
	for n := range 20 {
		crons = append(crons, testCron(func(c *batchv1.CronJob) { c.Namespace, c.Name, c.UID = "slow", fmt.Sprint("cron-", n), testUID(100+n) }))
	}
	s, hang, slow := newServer(crons...), make(chan struct{}), make(chan struct{}, len(crons))
	engine := &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		if req.GetCronJob().GetNamespace() == "slow" {
			slow <- struct{}{}
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

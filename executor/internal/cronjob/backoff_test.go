package cronjob

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A quota refuses a run until its delay is long. The delay ends when somebody changes what the
// CronJob asks for, or when one of its Jobs is gone (kubernetes/kubernetes#139917).
func TestTheDelayAfterRefusedCreationsEndsWithItsCause(t *testing.T) {
	const hour = time.Hour
	spec := func(change func(*batchv1.CronJob)) func(*batchv1.CronJob) {
		return func(c *batchv1.CronJob) { c.Generation++; change(c) }
	}
	suspend := func(yes bool) func(*batchv1.CronJob) {
		return spec(func(c *batchv1.CronJob) { c.Spec.Suspend = &yes })
	}
	annotate := func(name, text string) func(*batchv1.CronJob) {
		return func(c *batchv1.CronJob) { c.Annotations = map[string]string{name: text} }
	}
	cases := map[string]struct {
		changes []func(*batchv1.CronJob)
		gone    bool
		atOnce  bool
	}{
		"it is suspended and resumed":     {changes: []func(*batchv1.CronJob){suspend(true), suspend(false)}, atOnce: true},
		"its template is edited":          {changes: []func(*batchv1.CronJob){spec(func(c *batchv1.CronJob) { c.Spec.JobTemplate.Labels = nil })}, atOnce: true},
		"an option is taken back":         {changes: []func(*batchv1.CronJob){annotate(wire.CronJobSuspend, "false")}, atOnce: true},
		"one of its Jobs is gone":         {gone: true, atOnce: true},
		"somebody's annotation is set":    {changes: []func(*batchv1.CronJob){annotate("example.com/seen", "yes")}},
		"its status is written":           {changes: []func(*batchv1.CronJob){func(c *batchv1.CronJob) { c.Status.LastSuccessfulTime = &c.CreationTimestamp }}},
		"it is suspended and not resumed": {changes: []func(*batchv1.CronJob){suspend(true)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resource := batchv1.SchemeGroupVersion.WithResource("cronjobs")
				s := newServer(testCron(), testJob(7, "earlier", testUID(1)))
				admits, tries := false, 0
				s.Failures["create jobs"] = func(int) error {
					tries++
					if admits {
						return nil
					}
					return errQuota
				}
				began := time.Now()
				start(t, s, &script{Otherwise: startsOne}, func(c *Config) {
					c.Now = func() time.Time { return created.Add(time.Since(began)) }
					c.APIBackoff, c.MaxAPIBackoff = time.Second, hour
				})
				time.Sleep(100 * time.Second) // After 7 tries the delay is 64 s.
				if synctest.Wait(); tries != 7 {
					t.Fatalf("%d tries, want 7", tries)
				}
				admits = true
				cron := testCron()
				for _, change := range tc.changes {
					change(cron)
					s.Stamp(cron)
					if err := s.Tracker().Update(resource, cron.DeepCopy(), namespace); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if tc.gone {
					if err := s.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), namespace, "earlier"); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if got := tries == 8; got != tc.atOnce {
					t.Errorf("the run started at once: %v, want %v", got, tc.atOnce)
				}
			})
		})
	}
}

// startsOne starts cron-1, unless it exists, the CronJob is suspended, or the creation is deferred.
func startsOne(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	wait := &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	for _, job := range req.GetJobs() {
		if job.GetName() == "cron-1" {
			return wait, nil
		}
	}
	if until := deferredUntil(req); until.AsTime().After(req.GetNow().AsTime()) {
		wait.RequeueTime = until
		return wait, nil
	}
	if req.GetSpec().GetSuspend() {
		return wait, nil
	}
	return starting("cron-1")(req)
}

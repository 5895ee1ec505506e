package cronjob

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/fakes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// settled asks to be asked again at a time.
func settled(at time.Time) reply {
	return answering(&jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, RequeueTime: timestamppb.New(at)})
}

// TestAClockThatIsSetDelaysNoRunForLong has a clock that is a day ahead at the
// first look, which plans the next one for a day later still.
func TestAClockThatIsSetDelaysNoRunForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &fakes.Clock{}
		clock.Set(time.Until(created) + 24*time.Hour)
		d := &script{Answers: []reply{settled(created.Add(48 * time.Hour)), starting("cron-1")}}
		s := newServer(testCron())
		start(t, s, d, func(c *Config) { c.Now = clock.Now })
		time.Sleep(time.Second)
		if n := len(d.Requests()); n != 1 {
			t.Fatalf("%d questions, want one", n)
		}
		clock.Set(-24 * time.Hour)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if _, err := s.BatchV1().Jobs(namespace).Get(t.Context(), "cron-1", metav1.GetOptions{}); err != nil {
			t.Errorf("the next run did not start: %v", err)
		}
	})
}

// The engine gets a scheduled time in the future unchanged, and the last schedule time goes
// back if the engine decides so.
func TestAScheduledTimeInTheFutureIsSentAsItIs(t *testing.T) {
	future := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	job := testJob(7, "odd", testUID(1))
	job.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: future.Format(time.RFC3339)}
	cron := testCron(func(c *batchv1.CronJob) { c.Status.LastScheduleTime = &metav1.Time{Time: future} })
	s := newServer(cron, job)
	d := &script{Answers: []reply{applying(&jobpolicyv1.DecideCronJobResponse{
		Status: &jobpolicyv1.CronJobStatus{LastScheduleTime: timestamppb.New(created)},
	})}}
	start(t, s, d)
	req := d.Await(t, 1)
	if got := req.GetJobs()[0].GetScheduledTime().AsTime(); !got.Equal(future) {
		t.Errorf("scheduled time of the Job = %s, want %s", got, future)
	}
	eventually(t, "the status", func() bool {
		stored, err := s.BatchV1().CronJobs(namespace).Get(t.Context(), "cron", metav1.GetOptions{})
		return err == nil && stored.Status.LastScheduleTime.Time.Equal(created)
	})
}

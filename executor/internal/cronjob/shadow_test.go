package cronjob

import (
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestAShadowReportsARunThatDidNotStartAndStartsNone(t *testing.T) {
	report, err := shadow.NewReport(shadow.Config{Rest: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handedOver := testCron(func(c *batchv1.CronJob) {
		c.Name, c.UID = "ours", testUID(2)
		c.Annotations = map[string]string{wire.CronJobManagedBy: us}
	})
	s := newServer(testCron(), handedOver)
	due := &script{Otherwise: applying(&jobpolicyv1.DecideCronJobResponse{
		Create: &jobpolicyv1.CreateJob{Name: "cron-1", ScheduledTime: timestamppb.New(created)},
		Events: []*jobpolicyv1.JobEvent{normal("Started", "x")},
	})}
	start(t, s, due, func(c *Config) { c.Shadow = report })
	eventually(t, "the difference", func() bool { return len(report.Entries()) > 0 })
	if got := report.Entries(); len(got) != 1 || got[0].Kind != shadow.CreateJob || got[0].Name != "cron" {
		t.Errorf("differences %+v, want one, of the built-in controller's CronJob", got)
	}
	s.WantWrites(t)
}

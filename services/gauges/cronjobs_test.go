package gauges

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// nextRuns are CronJobs by when their next run is due; zero: never.
type nextRuns []time.Time

func (n nextRuns) EachCronJob(f func(executor.CronJobObservation)) {
	for _, at := range n {
		o := executor.CronJobObservation{Explanation: &jobpolicyv1.CronJobExplanation{}}
		if !at.IsZero() {
			o.Explanation.NextScheduleTime = timestamppb.New(at)
		}
		f(o)
	}
}

func TestTheNextRunOfAllCronJobs(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := RegisterCronJobs(registry, nextRuns{time.Unix(900, 0), {}, time.Unix(600, 0), time.Unix(700, 0)}); err != nil {
		t.Fatal(err)
	}
	expect(t, registry, map[string]float64{"managed_cronjobs": 4, "next_schedule_time_seconds": 600})
	without := prometheus.NewRegistry()
	if err := RegisterCronJobs(without, nextRuns{{}}); err != nil {
		t.Fatal(err)
	}
	if families, err := without.Gather(); err != nil || len(families) != 1 {
		t.Errorf("without a next run: %v, %v, want one metric", families, err)
	}
}

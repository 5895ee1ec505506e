package cronjob_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// BenchmarkDecide measures one decision. Its time does not depend on how long the caller
// was away, and grows in proportion to the rows.
func BenchmarkDecide(b *testing.B) {
	benchmarks := []struct {
		name  string
		lines []string
	}{
		{"settled", []string{"status last=2026-01-01T01:00:00Z", "now 2026-01-01T01:30:00Z"}},
		{"settled/Berlin", []string{"zone Europe/Berlin", "status last=2026-01-01T01:00:00Z", "now 2026-01-01T01:30:00Z"}},
		{"due", []string{"status last=2026-01-01T00:00:00Z", "now 2026-01-01T01:00:00Z"}},
		{"missed=3weeks/minutely", []string{"schedule * * * * *", "status last=2026-01-01T00:00:00Z", "now 2026-01-22T00:00:00Z"}},
		{"missed=10years/minutely", []string{"schedule * * * * *", "cronjob created=2016-01-01T00:00:00Z", "schedule * * * * *", "now 2026-01-22T00:00:00Z"}},
		{"missed=10years/leapdays", []string{"cronjob created=2016-01-01T00:00:00Z", "schedule 0 0 29 2 *", "zone America/New_York", "now 2026-01-22T00:00:00Z"}},
	}
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) { measure(b, newCluster().mustTell(b, bm.lines...).req) })
	}
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) { measure(b, withJobs(b, n)) })
	}
}

func measure(b *testing.B, req *jobpolicyv1.DecideCronJobRequest) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cronjob.Decide(req); err != nil {
			b.Fatal(err)
		}
	}
}

// withJobs has n complete Jobs, all of which are to be kept.
func withJobs(t testing.TB, n int) *jobpolicyv1.DecideCronJobRequest {
	c := newCluster().mustTell(t, "spec success=10000", "now 2026-01-01T00:30:00Z", "status success=2026-01-01T00:00:00Z last=2026-01-01T00:00:00Z")
	for i := range n {
		at := timestamppb.New(c.now().AddDate(0, 0, -1).Add(time.Duration(i) * time.Second))
		c.req.Jobs = append(c.req.Jobs, &jobpolicyv1.OwnedJob{
			Uid: numberedUID(uint64(i)), Name: fmt.Sprintf("report-%d", i), Outcome: jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE,
			StartTime: at, FinishTime: at, CompletionTime: at, ScheduledTime: at,
		})
	}
	return c.req
}

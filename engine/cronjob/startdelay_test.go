package cronjob_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The example of kubernetes#91652 and argo-workflows#16603: a thousand CronJobs that all
// say "0 * * * *". No minute of the hour has many more starts than its share of them.
func TestAThousandCronJobsDoNotStartAtOnce(t *testing.T) {
	const crons, window = 1000, 3600
	due := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	seconds, minutes := map[time.Duration]int{}, map[time.Duration]int{}
	for i := range crons {
		c := newCluster().mustTell(t, fmt.Sprintf("spec name=report-%d", i), "now 2026-01-01T01:00:00Z", fmt.Sprintf("option stagger_seconds %d", window))
		at := startOf(t, c)
		seconds[at.Sub(due)]++
		minutes[at.Sub(due)/time.Minute]++
	}
	most := func(of map[time.Duration]int) (n int) {
		for _, starts := range of {
			n = max(n, starts)
		}
		return n
	}
	// The expected numbers are 0.3 and 17; by chance alone these bounds are exceeded less than
	// once in a million.
	if most(seconds) > 6 || most(minutes) > 45 || len(minutes) != 60 {
		t.Errorf("%d in the fullest second, %d in the fullest minute, minutes with starts: %d", most(seconds), most(minutes), len(minutes))
	}
}

// startOf is when the run starts that is due now.
func startOf(t rapid.TB, c *cluster) time.Time {
	t.Helper()
	resp, err := c.decide()
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetCreate() != nil {
		return c.now()
	}
	for _, w := range resp.GetExplanation().GetWaits() {
		if w.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_START_JITTER {
			return w.GetUntil().AsTime()
		}
	}
	t.Fatalf("no start: %s", render(resp, true))
	return time.Time{}
}

// A stagger is that of the CronJob's name, however often it is asked for, and both delays
// end before the next run is due.
func TestStartDelays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cron := &jobpolicyv1.CronJobRef{
			Uid: rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uid"), Namespace: rapid.StringMatching("[a-z]{1,5}").Draw(t, "namespace"),
			Name: rapid.StringMatching("[a-z]{1,9}").Draw(t, "name"),
		}
		window, jitter := rapid.Int32Range(1, 86400).Draw(t, "window"), rapid.Int32Range(0, 3600).Draw(t, "jitter")
		o := &jobpolicyv1.CronJobOptions{StaggerSeconds: proto.Int32(window), StartJitterSeconds: proto.Int32(jitter)}
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0)
		interval := time.Duration(rapid.Int64Range(1, 200_000).Draw(t, "interval")) * time.Second
		d := cronjob.StartDelayOf(cron, o, at, at.Add(interval))
		if d.Stagger < 0 || d.Jitter < 0 || d.Total() >= interval || d.Stagger > time.Duration(window)*time.Second || d.Jitter > time.Duration(jitter)*time.Second {
			t.Fatalf("%+v in %s", d, interval)
		}
		if spare := min(10*time.Second, interval/2); interval-d.Stagger < spare {
			t.Fatalf("%s are left of %s", interval-d.Stagger, interval)
		}
		// Where there is room for the window, the offset is that of any run, also of a CronJob created anew.
		free := cronjob.StartDelayOf(cron, o, at, time.Time{})
		again := proto.CloneOf(cron)
		again.Uid, again.Generation = make([]byte, 16), 7
		later := cronjob.StartDelayOf(again, o, at.Add(24*time.Hour), time.Time{})
		if free.Stagger != later.Stagger || interval >= time.Duration(window+10)*time.Second && d.Stagger != free.Stagger {
			t.Fatalf("%s, then %s, and %s without a next run", d.Stagger, later.Stagger, free.Stagger)
		}
		if d.Stagger > free.Stagger {
			t.Fatalf("%s where the room is %s, and %s without a limit", d.Stagger, interval, free.Stagger)
		}
	})
}

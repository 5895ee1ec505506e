package cron

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"jobpolicy.dev/test/conformance/virtual"
)

var (
	seedFlag  = flag.Uint64("cron.seed", 1, "seed of the first life; the others follow")
	cronsFlag = flag.Int("cron.crons", 100, "how many lives of CronJobs")
	ttlsFlag  = flag.Int("cron.ttls", 30, "how many lives of Jobs with a time to live")
	jumpsFlag = flag.Int("cron.jumps", 8, "jumps of time in a life")
)

// TestCronJobsAndTTLs plays lives on both sides.
func TestCronJobsAndTTLs(t *testing.T) {
	var lives []*life
	for i := range *cronsFlag {
		lives = append(lives, newLife(*seedFlag+uint64(i), true))
	}
	for i := range *ttlsFlag {
		lives = append(lives, newLife(*seedFlag+uint64(i), false))
	}
	started, done := time.Now(), atomic.Int64{}
	virtual.Each(len(lives), func(i int) {
		lives[i].run(t, *jumpsFlag)
		if n := done.Add(1); n%1000 == 0 {
			fmt.Printf("%d of %d lives, %.1f a second\n", n, len(lives), float64(n)/time.Since(started).Seconds())
		}
	})
	for _, l := range lives {
		if l.problem != "" {
			crons, ttls := 1, 0
			if l.spec == nil {
				crons, ttls = 0, 1
			}
			t.Errorf("%s\n  %s\n  again: go test ./conformance/cron -args -cron.crons=%d -cron.ttls=%d -cron.seed=%d", l, l.problem, crons, ttls, l.seed)
		}
	}
	report(t, lives)
	t.Logf("%d lives in %s", len(lives), time.Since(started).Round(time.Millisecond))
}

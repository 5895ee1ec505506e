package cron

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/services/differences"
	"jobpolicy.dev/test/simulated/jobspec"
	"jobpolicy.dev/test/simulated/parity/virtual"
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
			t.Errorf("%s\n  %s\n  again: go test ./simulated/parity/cron -args -cron.crons=%d -cron.ttls=%d -cron.seed=%d", l, l.problem, crons, ttls, l.seed)
		}
	}
	report(t, lives)
	t.Logf("%d lives in %s", len(lives), time.Since(started).Round(time.Millisecond))
}

// A Job of somebody else has the name of a run. Ours skips that run only. The built-in controller starts no run after it
// (syncCronJob of v1.37 returns neither an error nor a time), until a user changes something: then the latest of
// those that it missed, and the next.
func TestTheScheduleGoesOnAfterANameThatIsTaken(t *testing.T) {
	l := newLife(1, true)
	l.spec = &batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobspec.New()}}
	p := &planner{life: l}
	created, taken := p.begin(), takeName(time.Minute)
	created.jump = aside
	l.deeds = []deed{created, taken, {jump: 3 * time.Minute}, {text: "a change", do: poke, jump: aside}}
	for builtin, want := range map[bool][]int{false: {0, 0, 3, 4}, true: {0, 0, 0, 2}} {
		moments, wrong := l.play(t, player{builtin: builtin, seed: l.seed}, nil)
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		var runs []int
		for _, m := range moments {
			runs = append(runs, len(slices.DeleteFunc(jobsOf(m.view), func(line string) bool { return strings.Contains(line, "owners=[]") })))
		}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Errorf("built-in %t: runs after each step (-want +got):\n%s", builtin, diff)
		}
	}
}

// Each difference that is tolerated has its row, and each row that says that these tests show it is
// tolerated.
func TestToleratedDifferencesHaveRows(t *testing.T) {
	if err := differences.CheckTolerated("test/simulated/parity/cron", toleratedRows()); err != nil {
		t.Error(err)
	}
}

package cron

import (
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/executables"
)

var (
	worldsFlag = flag.Int("cron.worlds", 1, "how many worlds to live through")
	seedFlag   = flag.Uint64("cron.seed", 1, "seed of the first world; the others follow")
	cronsFlag  = flag.Int("cron.crons", 80, "CronJobs in a world")
	ttlsFlag   = flag.Int("cron.ttls", 25, "Jobs with a time to live in a world")
	jumpsFlag  = flag.Int("cron.jumps", 8, "jumps of time in a world")
)

// TestCronJobsAndTTLs lives through worlds on both sides.
func TestCronJobsAndTTLs(t *testing.T) {
	builtin, ours := startSides(t)
	clock, ttlClock := &virtualClock{}, clocktesting.NewFakeClock(time.Now())
	clock.Set(time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if err := builtin.runBuiltin(ctx, clock, ttlClock); err != nil {
		t.Fatal(err)
	}
	if err := ours.runOurs(ctx, clock); err != nil {
		t.Fatal(err)
	}
	known, events, crowded := map[string]int{}, map[string]int{}, 0
	for i := range *worldsFlag {
		w := newWorld(*seedFlag+uint64(i), *cronsFlag, *ttlsFlag, builtin, ours, clock, ttlClock)
		w.run(ctx, *jumpsFlag)
		for _, f := range w.fates {
			if f.problem != "" {
				t.Errorf("%s\n  %s\n  again: go test ./conformance/cron -args -cron.worlds=1 -cron.seed=%d", f, f.problem, w.seed)
			}
			for name := range f.known {
				known[name]++
			}
			if f.crowded {
				crowded++
			}
			for _, line := range slices.Concat(builtin.view(f.namespace), ours.view(f.namespace)) {
				countEvent(events, line)
			}
		}
	}
	report(t, known, events, crowded)
}

func startSides(t *testing.T) (builtin, ours *side) {
	t.Helper()
	binaries := binDir(t)
	sides := make([]*side, 2)
	var starts sync.WaitGroup
	for i, name := range []string{"built-in", "ours"} {
		starts.Go(func() { sides[i] = startSide(t, name, binaries) })
	}
	starts.Wait()
	if slices.Contains(sides, nil) {
		t.Fatal("a control plane did not start")
	}
	return sides[0], sides[1]
}

func startSide(t *testing.T, name, binaries string) *side {
	plane, err := cluster.Start(t.Context(), cluster.Options{
		StateDir: t.TempDir(), BinDir: binaries,
		WithoutEngine: true, WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller,namespace-controller",
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("%s: stop: %v", name, err)
		}
	})
	s, err := newSide(name, plane)
	if err == nil {
		err = s.watch(t.Context())
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	return s
}

// binDir returns the directory of the executables.
func binDir(t *testing.T) string {
	t.Helper()
	dir, err := executables.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

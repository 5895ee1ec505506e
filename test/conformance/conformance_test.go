package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/executables"
)

var (
	casesFlag    = flag.Int("conformance.cases", 40, "how many generated cases to run beside the written ones")
	seedFlag     = flag.Uint64("conformance.seed", 1, "seed of the first generated case; the others follow")
	replayFlag   = flag.String("conformance.replay", "", "run only these cases: names, or seed-N; separated by commas")
	stepsFlag    = flag.String("conformance.steps", "", "with one case to replay: these steps instead of its own, separated by semicolons")
	specFlag     = flag.String("conformance.spec", "", "with one case to replay: this spec instead of its own, as JSON")
	shrinkFlag   = flag.Bool("conformance.shrink", false, "look for a shorter script and a simpler Job for each case that fails")
	parallelFlag = flag.Int("conformance.parallel", 120, "cases that run at the same time")
	settleFlag   = flag.Duration("conformance.settle", 2500*time.Millisecond, "how long nothing may happen for a control plane to be at rest")
)

// TestConformance plays every case on both control planes.
func TestConformance(t *testing.T) {
	cases, err := chosenCases()
	if err != nil {
		t.Fatal(err)
	}
	o := startSides(t)
	started := time.Now()
	results := playAll(t.Context(), o, cases)
	o.replayRaces(t.Context(), results)
	err = o.ours.audit.read()
	if err == nil {
		err = o.builtin.audit.read()
	}
	if err != nil {
		t.Error(err)
	}
	if *shrinkFlag {
		shrinkAll(t.Context(), o, results)
	}
	for _, r := range results {
		if r.problem != "" {
			t.Errorf("%s\n  %s\n  again: %s", r.c, r.problem, again(r.c))
		}
	}
	t.Logf("%s\n%s%s\nplayed in %s", summary(results), o.counts(), slowest(results), time.Since(started).Round(time.Second))
	noteLog(t, o.ours.plane.LogPath(cluster.Executor))
}

// again is the command that replays a case as it was.
func again(c *Case) string {
	line := fmt.Sprintf("go test ./conformance -run TestConformance -args -conformance.replay=%s -conformance.steps='%s'", c.Name, strings.Join(c.Steps, "; "))
	if !c.specChanged {
		return line
	}
	spec, err := json.Marshal(c.Spec)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s -conformance.spec='%s'", line, spec)
}

func chosenCases() ([]*Case, error) {
	if *replayFlag == "" {
		cases := Written()
		for i := range *casesFlag {
			cases = append(cases, Generated(*seedFlag+uint64(i)))
		}
		for i := range *casesFlag / 8 {
			cases = append(cases, GeneratedInRestarts(*seedFlag+uint64(i)))
		}
		return cases, nil
	}
	var cases []*Case
	for _, name := range strings.Split(*replayFlag, ",") {
		c, err := caseNamed(name)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if len(cases) > 1 {
		return cases, nil
	}
	return cases, replaySteps(cases[0], *stepsFlag, *specFlag)
}

// replaySteps replaces a case's steps and spec by those that a shrunk one has.
func replaySteps(c *Case, steps, spec string) error {
	if spec != "" {
		c.Spec, c.specChanged = batchv1.JobSpec{}, true
		if err := json.Unmarshal([]byte(spec), &c.Spec); err != nil {
			return fmt.Errorf("spec: %w", err)
		}
	}
	if steps == "" {
		return nil
	}
	c.Steps, c.next = nil, nil
	for _, line := range strings.Split(steps, ";") {
		c.Steps = append(c.Steps, strings.TrimSpace(line))
	}
	return nil
}

func caseNamed(name string) (*Case, error) {
	var seed uint64
	if _, err := fmt.Sscanf(name, "seed-%d", &seed); err == nil {
		return Generated(seed), nil
	}
	if _, err := fmt.Sscanf(name, "restarts-seed-%d", &seed); err == nil {
		return GeneratedInRestarts(seed), nil
	}
	for _, c := range Written() {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no case is called %q", name)
}

// playAll runs the cases, as many at a time as the flag allows: first those
// whose controllers are left alone, then the others.
func playAll(ctx context.Context, o oracle, cases []*Case) []result {
	quiet := slices.DeleteFunc(slices.Clone(cases), (*Case).inRestarts)
	rough := slices.DeleteFunc(slices.Clone(cases), func(c *Case) bool { return !c.inRestarts() })
	started := time.Now()
	results := playSome(ctx, o, quiet, "c")
	if len(rough) == 0 {
		return results
	}
	o.logf("%d cases played in %s; now %d in restarts", len(quiet), time.Since(started).Round(time.Second), len(rough))
	ctx, cancel := context.WithCancel(ctx)
	var disturbances sync.WaitGroup
	errs := make([]error, 2)
	for i, s := range []*side{o.builtin, o.ours} {
		disturbances.Go(func() {
			errs[i] = s.outage.disturb(ctx, 25*time.Second, 60*time.Second)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	results = append(results, playSome(ctx, o, rough, "r")...)
	cancel()
	disturbances.Wait()
	if err := errors.Join(errs...); err != nil {
		results = append(results, result{c: &Case{Name: "restarts"}, problem: err.Error()})
	}
	return results
}

func playSome(ctx context.Context, o oracle, cases []*Case, prefix string) []result {
	results := make([]result, len(cases))
	slots := make(chan struct{}, *parallelFlag)
	var all sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = o.play(ctx, c, fmt.Sprintf("%s%d", prefix, i))
			if results[i].problem != "" {
				o.logf("%s\n  %s", c, results[i].problem)
			}
		})
	}
	all.Wait()
	return results
}

// startSides starts both control planes and watches them until the test ends.
func startSides(t *testing.T) oracle {
	t.Helper()
	binaries := binDir(t)
	o := oracle{settle: *settleFlag, logf: t.Logf}
	var starts sync.WaitGroup
	starts.Go(func() {
		o.builtin = startSide(t, "built-in", cluster.Options{
			BinDir: binaries, WithoutEngine: true, WithoutExecutor: true,
			ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller,job-controller",
		}, cluster.ControllerManager)
	})
	starts.Go(func() {
		o.ours = startSide(t, "ours", cluster.Options{
			BinDir:                       binaries,
			ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller",
			ExtraArgs: map[string][]string{
				// Nothing is decided by how long the delay is, and waiting is dear; but
				// pods that fail in one step must have failed before it is over.
				cluster.Executor: {"--pod-failure-backoff=3s", "--max-pod-failure-backoff=3s"},
			},
		}, cluster.Executor, cluster.Engine)
	})
	starts.Wait()
	if o.builtin == nil || o.ours == nil {
		t.Fatal("a control plane did not start")
	}
	return o
}

func startSide(t *testing.T, name string, opts cluster.Options, controller ...string) *side {
	audit, auditArgs, err := newAudit(t.TempDir())
	if err != nil {
		t.Error(err)
		return nil
	}
	opts.StateDir = t.TempDir()
	opts.WithoutNode, opts.WithoutScheduler = true, true
	if opts.ExtraArgs == nil {
		opts.ExtraArgs = map[string][]string{}
	}
	// Pods do without service accounts, which would have to be waited for in
	// every namespace.
	opts.ExtraArgs[cluster.APIServer] = append(auditArgs, "--disable-admission-plugins=ServiceAccount")
	opts.ExtraArgs[cluster.ControllerManager] = []string{"--concurrent-job-syncs=10"}
	plane, err := cluster.Start(t.Context(), opts)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("%s: stop: %v", name, err)
		}
	})
	s, err := newSide(name, plane, audit, controller...)
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

// noteLog shows what the executor could not do.
func noteLog(t *testing.T, path string) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "round stopped") {
			t.Logf("executor: %s", line)
		}
	}
}

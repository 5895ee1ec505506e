package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
)

var (
	casesFlag    = flag.Int("conformance.cases", 40, "how many generated cases to run beside the written ones")
	seedFlag     = flag.Uint64("conformance.seed", 1, "seed of the first generated case; the others follow")
	replayFlag   = flag.String("conformance.replay", "", "run only these cases: names, or seed-N; separated by commas")
	stepsFlag    = flag.String("conformance.steps", "", "with one case to replay: these steps instead of its own, separated by semicolons")
	shrinkFlag   = flag.Bool("conformance.shrink", false, "look for a shorter script for each case that fails")
	parallelFlag = flag.Int("conformance.parallel", 120, "cases that run at the same time")
	settleFlag   = flag.Duration("conformance.settle", 2*time.Second, "how long nothing may happen for a control plane to be at rest")
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
	if *shrinkFlag {
		shrinkAll(t.Context(), o, results)
	}
	for _, r := range results {
		if r.problem != "" {
			t.Errorf("%s\n  %s\n  again: %s", r.c, r.problem, again(r.c))
		}
	}
	t.Logf("%s\nplayed in %s", summary(results), time.Since(started).Round(time.Second))
	checkLog(t, o.ours.plane.LogPath(cluster.Executor))
}

func again(c *Case) string {
	return fmt.Sprintf("go test ./conformance -run TestConformance -args -conformance.replay=%s -conformance.steps='%s'", c.Name, strings.Join(c.Steps, "; "))
}

func chosenCases() ([]*Case, error) {
	if *replayFlag == "" {
		cases := Written()
		for i := range *casesFlag {
			cases = append(cases, Generated(*seedFlag+uint64(i)))
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
	if *stepsFlag != "" && len(cases) == 1 {
		cases[0].Steps, cases[0].next = nil, nil
		for _, line := range strings.Split(*stepsFlag, ";") {
			cases[0].Steps = append(cases[0].Steps, strings.TrimSpace(line))
		}
	}
	return cases, nil
}

func caseNamed(name string) (*Case, error) {
	var seed uint64
	if _, err := fmt.Sscanf(name, "seed-%d", &seed); err == nil {
		return Generated(seed), nil
	}
	for _, c := range Written() {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no case is called %q", name)
}

// playAll runs the cases, as many at a time as the flag allows.
func playAll(ctx context.Context, o oracle, cases []*Case) []result {
	results := make([]result, len(cases))
	slots := make(chan struct{}, *parallelFlag)
	var all sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = o.play(ctx, c, fmt.Sprintf("c%d", i))
		})
	}
	all.Wait()
	return results
}

// startSides starts both control planes and watches them until the test ends.
func startSides(t *testing.T) oracle {
	t.Helper()
	binaries := binDir(t)
	o := oracle{settle: *settleFlag}
	var starts sync.WaitGroup
	starts.Go(func() {
		o.builtin = startSide(t, "built-in", cluster.Options{
			BinDir: binaries, WithoutEngine: true, WithoutExecutor: true,
			ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller,namespace-controller,job-controller",
		})
	})
	starts.Go(func() {
		o.ours = startSide(t, "ours", cluster.Options{
			BinDir:                       binaries,
			ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller,namespace-controller",
			ExtraArgs: map[string][]string{
				// Nothing is decided by how long the delay is, and waiting is dear.
				cluster.Executor: {"--pod-failure-backoff=1s", "--max-pod-failure-backoff=1s"},
			},
		})
	})
	starts.Wait()
	if o.builtin == nil || o.ours == nil {
		t.Fatal("a control plane did not start")
	}
	return o
}

func startSide(t *testing.T, name string, opts cluster.Options) *side {
	opts.StateDir = t.TempDir()
	opts.WithoutNode, opts.WithoutScheduler = true, true
	if opts.ExtraArgs == nil {
		opts.ExtraArgs = map[string][]string{}
	}
	// Pods do without service accounts, which would have to be waited for in
	// every namespace.
	opts.ExtraArgs[cluster.APIServer] = []string{"--disable-admission-plugins=ServiceAccount"}
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

// binDir returns the directory of the executables: JOBPOLICY_BIN_DIR, or bin/
// of this repository after building them.
func binDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("JOBPOLICY_BIN_DIR"); dir != "" {
		return dir
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("bash", filepath.Join(root, "deploy/local/build.sh"))
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		t.Fatalf("build the executables: %v", err)
	}
	return filepath.Join(root, "bin")
}

// checkLog fails for a status that the API server refused.
func checkLog(t *testing.T, path string) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "is invalid") {
			t.Errorf("the API server refused what the executor wrote: %s", line)
		}
		if strings.Contains(line, "round stopped") {
			t.Logf("executor: %s", line)
		}
	}
}

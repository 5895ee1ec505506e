package parity

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

var (
	casesFlag  = flag.Int("parity.cases", 300, "how many generated cases to run beside the written ones")
	seedFlag   = flag.Uint64("parity.seed", 1, "seed of the first generated case; the others follow")
	replayFlag = flag.String("parity.replay", "", "run only these cases: names, or seed-N; separated by commas")
	stepsFlag  = flag.String("parity.steps", "", "with one case to replay: these steps instead of its own, separated by semicolons")
	specFlag   = flag.String("parity.spec", "", "with one case to replay: this spec instead of its own, as JSON")
	shrinkFlag = flag.Bool("parity.shrink", false, "look for a shorter script and a simpler Job for each case that fails")
)

// TestParity plays every case on both sides.
func TestParity(t *testing.T) {
	cases, err := chosenCases()
	must.Succeed(t, err)
	started, results := time.Now(), make([]result, len(cases))
	var played, failed atomic.Int64
	stop := progress(started, &played, &failed, len(cases))
	virtual.Each(len(cases), func(i int) {
		results[i] = run(t, cases[i])
		if results[i].problem != "" {
			failed.Add(1)
			fmt.Printf("%s\n  %s\n", results[i].c, results[i].problem)
		}
		played.Add(1)
	})
	stop()
	if *shrinkFlag {
		shrinkAll(t, results)
	}
	for _, r := range results {
		if r.problem != "" {
			t.Errorf("%s\n  %s\n  again: %s", r.c, r.problem, again(r.c))
		}
	}
	took := time.Since(started)
	t.Logf("%s\n%d cases in %s, %.1f a second", summary(results), len(results), took.Round(time.Millisecond), float64(len(results))/took.Seconds())
}

// progress prints now and then how far the run is, until it is stopped.
func progress(started time.Time, played, failed *atomic.Int64, all int) (stop func()) {
	ticker, done := time.NewTicker(10*time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				n := played.Load()
				fmt.Printf("%d of %d cases, %.1f a second, %d with differences\n", n, all, float64(n)/time.Since(started).Seconds(), failed.Load())
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

// again is the command that replays a case exactly.
func again(c *Case) string {
	line := fmt.Sprintf("go test ./simulated/parity -run TestParity -args -parity.replay=%s -parity.steps='%s'", c.Name, strings.Join(c.Steps, "; "))
	if !c.specChanged {
		return line
	}
	spec, err := json.Marshal(c.Spec)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s -parity.spec='%s'", line, spec)
}

func chosenCases() ([]*Case, error) {
	if *replayFlag == "" {
		return allCases(*casesFlag), nil
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

// allCases are the written cases and this many generated ones. In one of nine generated cases
// the controllers are restarted.
func allCases(generated int) []*Case {
	cases := Written()
	for i := range generated {
		seed := *seedFlag + uint64(i)
		if seed%9 == 0 {
			cases = append(cases, GeneratedInRestarts(seed))
			continue
		}
		cases = append(cases, Generated(seed))
	}
	return cases
}

// replaySteps replaces a case's steps and spec by those of a shrunk case.
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

//go:debug randseednop=0

package world

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

var (
	seedsFlag    = flag.Uint64("world.seeds", 500, "number of worlds")
	fromFlag     = flag.Uint64("world.from", 1, "the seed of the first world; the others follow")
	seedFlag     = flag.Uint64("world.seed", 0, "play only this world; if it breaks a rule, shrink it and print its history")
	tellFlag     = flag.Bool("world.tell", false, "with one seed: print its history even if nothing is broken, and do not shrink it")
	alarmFlag    = flag.String("world.alarm", "", "with one seed: shrink it to a world in which something is found whose text contains this. Default: that breaks the same rule as the first thing found")
	withFlag     = flag.String("world.with", "", "play only worlds whose plan has a feature, a fault or a step of this name, such as 'many pods'")
	workersFlag  = flag.Int("world.workers", 2, "number of processes")
	twiceFlag    = flag.Bool("world.twice", false, "play the worlds again in other processes, in the opposite order, and count how often both logs of writes are the same; with one seed: print where two histories part")
	spareFlag    = flag.Bool("world.faultless", false, "nothing fails, and nobody is killed")
	podjobFlag   = flag.Bool("world.podjob", false, "play worlds of package podjob, not of the executor")
	upstreamFlag = flag.Bool("world.upstream", false, "play worlds of Kubernetes' own controllers, not of the executor, and count what the judges find")
	untilFlag    = flag.Bool("world.until-broken", false, "stop after the first world that breaks a rule, and do not shrink it")
	eachFlag     = flag.Bool("world.each-fault", false, "cross the features of Jobs with each kind of fault, not with classes of them")
	workerFlag   = flag.Bool("world.worker", false, "work for another process: read seeds, write reports as JSON")
)

// drawn is the plan of a seed, as the flags say.
func drawn(seed uint64) *plan {
	return draw(seed, drawOptions{faultless: *spareFlag, podjob: *podjobFlag, upstream: *upstreamFlag})
}

// TestWorlds plays worlds, and fails if a rule is broken in one of them.
func TestWorlds(t *testing.T) {
	prepare()
	switch {
	case *workerFlag:
		work(t)
	case *seedFlag != 0 && *twiceFlag:
		compare(t)
	case *seedFlag != 0:
		replay(t, drawn(*seedFlag))
	default:
		simulate(t, *seedsFlag)
	}
}

// podjobSeeds is how many worlds of package podjob are played by default: in these, each fault below comes up.
const podjobSeeds = 240

// TestPodjobWorlds plays worlds in which a controller made with package podjob stands in for the
// executor, and fails if one of the things that such a controller has to cope with never comes up.
func TestPodjobWorlds(t *testing.T) {
	prepare()
	*podjobFlag = true
	defer func() { *podjobFlag = false }()
	total := simulate(t, podjobSeeds)
	for _, what := range []faultKind{
		lostRequest, lostAnswer, lateEffect, lateRequest, conflict, serverError, timedOutDone, throttled, putBack, altering, engineAway, engineGarbled,
	} {
		if total.byOutcome["fault: "+string(what)] == nil {
			t.Errorf("in %d worlds this never came up: %s", total.worlds, what)
		}
	}
	for _, what := range []string{"give a pod away", "take the name of a pod", "take the tracking finalizer off", "delete a pod with force", "limit pods", "suspend", "set parallelism", "resize", "delete", "kill"} {
		if total.byOutcome["step: "+what] == nil {
			t.Errorf("in %d worlds nobody did this: %s", total.worlds, what)
		}
	}
}

// replay plays one world and prints its history.
func replay(t *testing.T, p *plan) {
	e := play(t, p, true)
	if len(e.breaches) > 0 && !*tellFlag {
		p, e = smallest(t, p, e)
	}
	t.Logf("%s\n%s\noutcomes: %v, %d writes, digest %s, took %s", e.plan, e.journal.story(e.breaches...), e.outcomes, e.journal.writes(), e.journal.digest(), e.took)
	for _, b := range e.breaches {
		t.Errorf("world %d: %s", p.seed, b)
	}
}

// compare plays one world several times, and prints where two logs of writes begin to differ.
func compare(t *testing.T) {
	first := play(t, drawn(*seedFlag), true).journal
	for n := range 10 {
		again := play(t, drawn(*seedFlag), true).journal
		if at := parting(first.log(), again.log()); at >= 0 {
			t.Logf("play %d differs from the first:\n%s\nand\n%s", n+2, first.before(at), again.before(at))
			return
		}
	}
	t.Log("all logs are the same")
}

// parting is the first place in which two logs differ; below 0: none.
func parting(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// before is the history before a write, and that write.
func (j *journal) before(write int) string {
	end := 0
	for end = range j.lines {
		if j.lines[end].logged() {
			write--
		}
		if write < 0 {
			break
		}
	}
	part := journal{begun: j.begun, lines: j.lines[max(0, end-20) : end+1]}
	return part.story()
}

// shrinkTries is how many worlds are played at most to make one smaller.
const shrinkTries = 400

// smallest returns a plan, as small as possible, that breaks the same rule, and its
// result.
func smallest(t *testing.T, p *plan, e *aftermath) (*plan, *aftermath) {
	rule := e.breaches[0].rule
	same := func(b breach) bool { return b.rule == rule }
	if *alarmFlag != "" {
		same = func(b breach) bool { return strings.Contains(b.String(), *alarmFlag) }
	}
	p = shrink(p, shrinkTries, func(smaller *plan) bool {
		tried := play(t, smaller, true)
		if !slices.ContainsFunc(tried.breaches, same) {
			return false
		}
		e = tried
		return true
	})
	return p, e
}

// simulate plays many worlds in other processes.
func simulate(t *testing.T, n uint64) *tally {
	began := time.Now()
	seeds := &seedRange{next: *fromFlag, end: *fromFlag + n}
	total, logs, twice, found := newTally(), 0, sameness{}, alarms{}
	var slowest struct {
		seed uint64
		took time.Duration
	}
	lastLine := began
	tell := func(r report) {
		if r.Passed {
			return
		}
		total.add(r)
		twice.add(r)
		if took := time.Duration(r.Micros) * time.Microsecond; took > slowest.took {
			slowest.seed, slowest.took = r.Seed, took
		}
		if found.add(r.Seed, r.Breaches); len(r.Breaches) > 0 && !*upstreamFlag {
			logs++
			if logs <= 20 {
				t.Errorf("world %d: %s", r.Seed, r.Breaches)
				if r.Story != "" && logs <= 3 {
					t.Log(r.Story)
				}
			}
			if *untilFlag {
				seeds.stop()
			}
		}
		if now := time.Now(); now.Sub(lastLine) > 10*time.Second {
			lastLine = now
			fmt.Fprintln(os.Stderr, progress(total, n, now.Sub(began)))
		}
	}
	c := workerPool{binary: os.Args[0], args: workerArgs(), workers: *workersFlag, seeds: seeds, tell: tell}
	if err := c.play(t); err != nil {
		t.Error(err)
	}
	if *twiceFlag {
		c.seeds, c.tell = &seedRange{next: *fromFlag, end: *fromFlag + n, down: true}, twice.add
		if err := c.play(t); err != nil {
			t.Error(err)
		}
	}
	if unused := total.unused(); total.worlds >= 500 && !*podjobFlag && !*upstreamFlag && len(unused) > 0 {
		t.Errorf("no world uses these parts of the contract: %s", unused)
	}
	if untaken := total.untaken(); total.worlds >= 500 && !*podjobFlag && !*upstreamFlag && len(untaken) > 0 {
		t.Errorf("no executor takes these steps of the model: %s", untaken)
	}
	if uncompared := total.uncompared(); total.worlds >= 500 && !*podjobFlag && !*upstreamFlag && len(uncompared) > 0 {
		t.Errorf("no judge compared these metrics while they told something: %q", uncompared)
	}
	fmt.Fprintln(os.Stderr, progress(total, n, time.Since(began)))
	if *upstreamFlag {
		t.Logf("%s\n%s", progress(total, n, time.Since(began)), found)
		return total
	}
	t.Logf("%s\n%s\n%s\n%s\nslowest: world %d, %s", progress(total, n, time.Since(began)), total, total.crossing.table(*eachFlag), twice, slowest.seed, slowest.took)
	return total
}

func progress(t *tally, n uint64, took time.Duration) string {
	return fmt.Sprintf("%d of %d worlds, %.0f a second, broken: %d", t.worlds, n, float64(t.worlds)/took.Seconds(), t.broken)
}

// work plays the worlds whose seeds come in on standard input.
func work(t *testing.T) {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.NewFile(3, "reports"))
	for {
		var seed uint64
		if err := in.Decode(&seed); err != nil {
			return // There are no more.
		}
		p := drawn(seed)
		if *withFlag != "" && !p.has(*withFlag) {
			must.Succeed(t, out.Encode(report{Seed: seed, Passed: true}))
			continue
		}
		e := play(t, p, false)
		r := e.report()
		if len(e.breaches) > 0 && !*untilFlag && !*upstreamFlag {
			r.Story = e.plan.String() + e.journal.story(e.breaches...)
		}
		if *twiceFlag {
			r.Digest = e.journal.digest()
		}
		must.Succeed(t, out.Encode(r))
	}
}

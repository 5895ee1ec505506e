package world

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A drawer draws a plan.
type drawer struct {
	*rand.Rand
	p *plan
	drawOptions
}

type drawOptions struct {
	faultless bool // Nothing fails, and nobody is killed.
	podjob    bool // A controller made with package podjob stands in for the executor.
	upstream  bool // Kubernetes' own controllers do.
}

// draw makes the plan of a seed.
func draw(seed uint64, options drawOptions) *plan {
	d := &drawer{p: &plan{seed: seed}, drawOptions: options}
	d.begin(1)
	d.frame()
	d.begin(2)
	if d.chance(8) && !d.podjob { // A world of CronJobs takes three times as long as others.
		d.crons()
	} else {
		d.jobs()
	}
	d.begin(3)
	d.others()
	if !d.faultless {
		d.begin(4)
		d.faults()
		d.begin(5)
		d.deaths()
	}
	d.rare()
	d.options()
	d.cronOptions()
	d.cronGroup()
	d.clusterGroup()
	d.classified()
	if !d.upstream { // Only our executors know what to do with such pods.
		d.neverStarts()
		d.endsPods()
		d.fullQuotas()
		d.standstills()
	}
	d.breakPolicies()
	switch {
	case d.podjob:
		d.forPodjob()
	case d.upstream:
		d.forUpstream()
	}
	slices.SortStableFunc(d.p.steps, func(a, b *step) int { return cmp.Or(cmp.Compare(a.write, b.write), cmp.Compare(a.at, b.at)) })
	return d.p
}

// begin begins a part of the plan. The numbers drawn in one part do not depend on how
// many were drawn in another.
func (d *drawer) begin(part uint64) { d.Rand = rand.New(rand.NewPCG(d.p.seed, part)) }

// chance is true in percent of 100 cases.
func (d *drawer) chance(percent int) bool { return d.IntN(100) < percent }

// among draws a number between two, these included.
func (d *drawer) among(low, high int) int { return low + d.IntN(high-low+1) }

func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

// within draws a time between two bounds, to the nanosecond, evenly by magnitude: 10 to
// 100 ms is as likely as 1 to 10 s.
func (d *drawer) within(least, most time.Duration) time.Duration {
	low, high := math.Log(float64(least)), math.Log(float64(most))
	return time.Duration(math.Exp(low + d.Float64()*(high-low)))
}

// moment draws a moment of the time in which things happen.
func (d *drawer) moment() time.Duration { return time.Duration(d.Int64N(int64(d.p.calm))) }

// longestTrouble is how long a fault lasts at most. Without a limit, a world of days
// would retry forever.
const longestTrouble = 20 * time.Minute

// window draws a part of that time.
func (d *drawer) window() (from, to time.Duration) {
	if d.chance(20) && d.p.brief() {
		return 0, d.p.calm
	}
	from = d.moment()
	return from, min(d.p.calm, from+d.within(200*time.Millisecond, min(d.p.calm, longestTrouble)))
}

// frame draws what holds for the whole world.
func (d *drawer) frame() {
	p := d.p
	p.begins = time.Date(2026, 3, 2, 8, 0, 0, d.IntN(1e9), time.UTC)
	p.calm = d.within(5*time.Second, 10*time.Minute)
	p.settle = settleTime
	p.executor = executorPlan{replace: d.chance(50), replicas: 1, zone: "Etc/UTC"}
	if d.chance(8) {
		p.executor.replicas, p.executor.together = 2, d.chance(35)
	}
	if d.chance(20) {
		p.executor.maxRows = d.among(1, 4)
	}
	if d.chance(25) {
		p.executor.maxChanges = d.among(1, 6)
	}
	if d.chance(25) {
		p.executor.maxUncounted = d.among(1, 6)
	}
	if d.chance(20) {
		p.executor.qps = 20
	}
	p.executor.keepStartTime = d.chance(8)
	p.network.request = span{time.Millisecond, d.within(2*time.Millisecond, 60*time.Millisecond)}
	p.network.event = span{100 * time.Microsecond, d.within(time.Millisecond, 80*time.Millisecond)}
	p.network.noWatchList = d.chance(25)
	p.executor.warmStandby = p.executor.elected() && d.chance(50)
}

// settleTime is how long a world continues after its last fault: longer than all
// possible delays in a row.
const settleTime = 45 * time.Minute

// jobs draws the Jobs, their pods' fates, and what users do to them.
func (d *drawer) jobs() {
	n := pick(d, 1, 1, 1, 2, 2, 3, 4)
	for i := range n {
		d.begin(uint64(10 + i))
		j := d.job(fmt.Sprintf("job-%c", 'a'+i))
		d.p.jobs = append(d.p.jobs, j)
		d.life(j)
	}
}

// add plans a step.
func (d *drawer) add(s step) { d.p.steps = append(d.p.steps, &s) }

// when draws when something happens to a Job that is created at some time: at any time,
// soon after, or exactly when the executor does something.
func (d *drawer) when(created time.Duration) step {
	switch {
	case d.chance(30):
		return step{write: d.among(1, 30), before: d.chance(30), at: d.within(1, 50*time.Millisecond)}
	case d.chance(40):
		return step{at: created + d.within(time.Millisecond, 20*time.Second)}
	}
	return step{at: created + time.Duration(d.Int64N(int64(max(d.p.calm-created, 1))))}
}

package world

import (
	"slices"
	"time"

	"jobpolicy.dev/test/simulated/jobspec"
)

// clone copies the parts of a plan that shrinking changes.
func (p *plan) clone() *plan {
	c := *p
	c.jobs, c.crons, c.steps, c.faults = slices.Clone(p.jobs), slices.Clone(p.crons), slices.Clone(p.steps), slices.Clone(p.faults)
	return &c
}

// shrink looks for a smaller plan that still breaks a rule, with at most this many
// tries. breaks plays a plan.
func shrink(p *plan, tries int, breaks func(*plan) bool) *plan {
	for again := true; again; {
		again = false
		for _, smaller := range p.simpler() {
			if tries--; tries < 0 {
				return p
			}
			if breaks(smaller) {
				p, again = smaller, true
				break
			}
		}
	}
	return p
}

// simpler returns plans with one part less, the largest parts first.
func (p *plan) simpler() []*plan {
	var out []*plan
	with := func(change func(*plan)) {
		c := p.clone()
		change(c)
		out = append(out, c)
	}
	if len(p.faults) > 1 {
		with(func(c *plan) { c.faults = nil })
	}
	for i := range p.jobs {
		if len(p.jobs) > 1 {
			with(func(c *plan) { c.dropJob(i) })
		}
	}
	for i := range p.crons {
		if len(p.crons) > 1 {
			with(func(c *plan) { c.dropCron(i) })
		}
	}
	for i := range p.faults {
		with(func(c *plan) { c.faults = slices.Delete(c.faults, i, i+1) })
	}
	for i, s := range p.steps {
		if s.verb != "create" {
			with(func(c *plan) { c.steps = slices.Delete(c.steps, i, i+1) })
		}
	}
	for i := range p.jobs {
		p.simplerJob(i, with)
	}
	p.simplerFrame(with)
	return out
}

func (p *plan) dropJob(i int) {
	p.dropSteps(p.jobs[i].on())
	p.jobs = slices.Delete(p.jobs, i, i+1)
}

func (p *plan) dropCron(i int) {
	p.dropSteps(p.crons[i].on())
	p.crons = slices.Delete(p.crons, i, i+1)
}

// simplerJob removes fields of a Job, and lets its pods simply succeed.
func (p *plan) simplerJob(i int, with func(func(*plan))) {
	job := p.jobs[i]
	edit := func(has bool, change func(*jobPlan)) {
		if has {
			with(func(c *plan) {
				j := *job
				j.spec, j.fates = *job.spec.DeepCopy(), slices.Clone(job.fates)
				change(&j)
				c.jobs[i] = &j
			})
		}
	}
	edit(len(job.fates) > 1, func(j *jobPlan) { j.fates = j.fates[:len(j.fates)/2] })
	edit(len(job.fates) > 0, func(j *jobPlan) { j.fates = j.fates[:len(j.fates)-1] })
	for k, f := range job.fates {
		edit(f.end != endsWell, func(j *jobPlan) { j.fates[k].end = endsWell })
		edit(f.restarts > 0, func(j *jobPlan) { j.fates[k].restarts = 0 })
	}
	for _, spec := range jobspec.Simpler(&job.spec) {
		edit(true, func(j *jobPlan) { j.spec = spec })
	}
	edit(len(job.finalizers) > 0, func(j *jobPlan) { j.finalizers = nil })
}

// simplerFrame removes special settings of the world.
func (p *plan) simplerFrame(with func(func(*plan))) {
	e := p.executor
	edit := func(has bool, change func(*plan)) {
		if has {
			with(change)
		}
	}
	edit(e.maxChanges > 0, func(c *plan) { c.executor.maxChanges = 0 })
	edit(e.maxUncounted > 0, func(c *plan) { c.executor.maxUncounted = 0 })
	edit(e.maxRows > 0, func(c *plan) { c.executor.maxRows = 0 })
	edit(e.leastRows > 0, func(c *plan) { c.executor.leastRows = 0 })
	edit(e.largeRequest > 0, func(c *plan) { c.executor.largeRequest = 0 })
	edit(e.workers > 0, func(c *plan) { c.executor.workers = 0 })
	edit(e.qps > 0, func(c *plan) { c.executor.qps = 0 })
	edit(e.warmStandby, func(c *plan) { c.executor.warmStandby = false })
	edit(e.replicas > 1, func(c *plan) { c.executor.replicas, c.executor.together, c.executor.warmStandby = 1, false, false })
	edit(p.network.noWatchList, func(c *plan) { c.network.noWatchList = false })
	if last := p.lastStep(); last+time.Second < p.calm/2 && len(p.crons) == 0 {
		with(func(c *plan) { c.calm = max(last+time.Second, c.calm/2) })
	}
	for i, f := range p.faults {
		if half := (f.to - f.from) / 2; half > time.Second {
			first, second := *f, *f
			first.to, second.from = f.from+half, f.from+half
			with(func(c *plan) { c.faults[i] = &first })
			with(func(c *plan) { c.faults[i] = &second })
		}
	}
}

// lastStep is when the last step is due, except those of the end.
func (p *plan) lastStep() time.Duration {
	var last time.Duration
	for _, s := range p.steps {
		if s.write == 0 && !s.expires && !s.ends && s.at < p.calm {
			last = max(last, s.at)
		}
	}
	return last
}

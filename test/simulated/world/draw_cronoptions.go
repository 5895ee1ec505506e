package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobpolicy.dev/executor/wire"
)

// unreadableOptions are options of a CronJob that no executor can use.
const unreadableOptions = "{cronJob: {staggerSeconds: 0}}"

// cronOptions gives some CronJobs options of their own.
func (d *drawer) cronOptions() {
	if len(d.p.situations) > 0 {
		return
	}
	for i, c := range d.p.crons {
		if d.begin(uint64(400 + i)); wire.HasPolicy(c.annotations) {
			continue
		}
		switch {
		case d.chance(8):
			d.unreadable(c)
		case d.chance(30):
			c.setOptions(fmt.Sprintf("{cronJob: {maxMissedRuns: %d, publishNextScheduleTime: %t}}", pick(d, 0, 2, 3, 100), d.chance(50)))
		case d.chance(10):
			c.setOptions("{cronJob: {publishNextScheduleTime: true, staggerSeconds: 20}}")
		}
	}
}

// cronGroup is the group of CronJobs in worlds that have one.
const cronGroup = "etl"

// cronGroup lets all CronJobs share their active runs, which take so long that others have to wait.
func (d *drawer) cronGroup() {
	d.begin(450)
	if len(d.p.situations) > 0 || len(d.p.crons) == 0 || !d.chance(25) {
		return
	}
	for _, c := range d.p.crons {
		if c.annotations[wire.Policy] == unreadableOptions {
			return
		}
	}
	most := d.among(1, 2)
	for i, c := range d.p.crons {
		c.setOptions(fmt.Sprintf("{cronJob: {group: {name: %s, maxActiveRuns: %d}}}", cronGroup, most+i*d.IntN(2)))
		for f := range c.fates {
			if d.chance(50) {
				c.fates[f].run = d.within(10*time.Second, min(10*time.Minute, d.p.calm/8))
			}
		}
	}
}

// clusterGroup makes that group one of the cluster, and moves one of its CronJobs to another namespace. What their
// options say does not count then.
func (d *drawer) clusterGroup() {
	d.begin(451)
	if d.podjob || d.upstream || !slices.ContainsFunc(d.p.crons, (*cronPlan).grouped) || !d.chance(50) {
		return
	}
	d.p.executor.clusterRuns = d.among(1, 2)
	c := pick(d, d.p.crons...)
	before := c.on()
	c.namespace = neighbour
	for _, s := range d.p.steps {
		if s.on == before {
			s.on = c.on()
		}
	}
}

// grouped reports whether the CronJob names the group.
func (c *cronPlan) grouped() bool {
	return strings.Contains(c.annotations[wire.Policy], "group: {name: "+cronGroup)
}

// unreadable gives a CronJob options that cannot be read, until a user corrects them.
func (d *drawer) unreadable(c *cronPlan) {
	c.setOptions(unreadableOptions)
	d.add(step{at: d.within(time.Minute, d.p.calm), who: "user", verb: "set cron options", on: c.on(), text: "{}"})
}

// setOptions writes options as people do.
func (c *cronPlan) setOptions(text string) {
	if c.annotations == nil {
		c.annotations = map[string]string{}
	}
	c.annotations[wire.Policy] = text
}

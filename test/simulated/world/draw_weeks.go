package world

import (
	"fmt"
	"time"

	"jobpolicy.dev/executor/wire"
)

const (
	day = 24 * time.Hour
	// longestRhythm is how long a world of CronJobs lasts at most, unless it lasts weeks.
	longestRhythm = 6 * day
)

// sparse are schedules for worlds of weeks: a few dozen runs, most of them at hours that a
// clock skips or shows twice when it changes.
var sparse = []string{
	"0 2 * * *", "30 1 * * *", "30 2 * * *", "15 2 * * SUN", "45 1 * * 0,3", "0 3 * * MON,SUN", "*/20 2 * * 0", "@daily", "@weekly", "@every 36h", "@every 25h",
}

// weeks makes a world of CronJobs last two to five weeks, in a zone whose clocks change
// meanwhile. A CronJob may be suspended for days, the executor may be away for a day, and its
// clock may be wrong for hours. The faults that were drawn before meet some of the runs.
func (d *drawer) weeks() {
	p := d.p
	change := pick(d, clockChanges[:5]...)
	p.calm = time.Duration(d.among(14, 35))*day + d.within(time.Second, 20*time.Hour)
	p.begins = change.at.Add(-time.Duration(d.Int64N(int64(p.calm-2*day))) - day)
	p.network.longWatches, p.executor.zone = true, change.zone
	p.executor.replicas, p.executor.together, p.executor.warmStandby = 1, false, false
	for _, c := range p.crons {
		p.dropSteps(c.on())
	}
	p.crons = nil
	var schedule string
	for i := range d.among(1, 2) {
		schedule = d.ofWeeks(fmt.Sprintf("cron-%c", 'a'+i), change.zone)
	}
	if d.chance(30) {
		d.often(change.zone)
	}
	for _, f := range p.faults {
		at := d.aroundRun(schedule)
		f.from, f.to = at, at+min(f.to-f.from, longestTrouble)
	}
	for _, s := range p.steps {
		if s.who == "server" || s.verb == "kill" && s.write == 0 {
			s.at = d.aroundRun(schedule)
		}
	}
	p.dropVerb("set the clock") // It would be wrong for weeks.
	if !d.faultless {
		d.absences(schedule)
	}
}

// overWeeks reports whether the plan has CronJobs and lasts weeks.
func (p *plan) overWeeks() bool { return len(p.crons) > 0 && p.calm > 2*longestRhythm }

// ofWeeks draws a CronJob and what users do to it, and returns its schedule.
func (d *drawer) ofWeeks(name, zone string) string {
	p := d.p
	c := d.cron(name, rhythm{schedule: pick(d, sparse...)}, zone)
	for range 24 {
		c.fates = append(c.fates, d.fate(30))
	}
	for i := range c.fates {
		if c.fates[i].end == restless && !d.chance(20) {
			c.fates[i].end = endsWell // One that never ends may hold up all further runs.
		}
	}
	p.crons = append(p.crons, c)
	on := c.on()
	created := d.within(10*time.Millisecond, time.Minute)
	d.add(step{at: created, who: "user", verb: "create", on: on})
	if d.chance(60) {
		at := d.moment()
		d.add(step{at: at, who: "user", verb: "suspend cron", on: on})
		d.add(step{at: at + d.within(12*time.Hour, 6*day), who: "user", verb: "resume cron", on: on})
	}
	for range pick(d, 0, 0, 1, 2) {
		d.cronEdit(on, created, zone)
	}
	d.add(step{at: p.calm, who: "user", verb: "suspend cron", on: on})
	return c.spec.Schedule
}

// often adds a CronJob with many runs a day, which is resumed for only an hour. By then it
// has missed more than 100 runs.
func (d *drawer) often(zone string) {
	c := d.cron("often", rhythm{schedule: pick(d, "*/10 * * * *", "@every 7m", "*/5 * * * *")}, zone)
	d.p.crons = append(d.p.crons, c)
	if c.annotations == nil {
		c.spec.Suspend = new(true)
	} else {
		c.annotations[wire.CronJobSuspend] = "true"
	}
	on := c.on()
	at := d.moment()
	d.add(step{at: at / 8, who: "user", verb: "create", on: on})
	d.add(step{at: at, who: "user", verb: "resume cron", on: on})
	d.add(step{at: at + time.Hour, who: "user", verb: "suspend cron", on: on})
}

// absences lets the executor be away for about a day, and its clock be wrong for hours.
func (d *drawer) absences(schedule string) {
	if d.chance(60) {
		d.add(step{at: d.moment(), who: "executor", verb: "kill", d: d.within(6*time.Hour, 40*time.Hour)})
	}
	if d.chance(40) {
		at, wrong := d.aroundRun(schedule), pick(d, time.Duration(-1), 1)*d.within(time.Second, 2*time.Hour)
		d.add(step{at: at, who: "executor", verb: "set the clock", d: wrong})
		d.add(step{at: at + d.within(time.Minute, 12*time.Hour), who: "executor", verb: "set the clock", d: -wrong})
	}
}

// aroundRun draws a moment from some minutes before a run to some seconds after it.
func (d *drawer) aroundRun(schedule string) time.Duration {
	at := d.nextRun(schedule, d.moment())
	if d.chance(50) {
		at -= d.within(time.Second, 10*time.Minute)
	} else {
		at += d.within(time.Millisecond, time.Minute)
	}
	return min(max(0, at), d.p.calm-time.Minute)
}

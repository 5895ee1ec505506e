package world

import (
	"fmt"
	"time"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
)

// A rhythm is a schedule, and how long a world of it lasts: for eight to fifteen runs,
// or up to six days.
type rhythm struct {
	schedule string
	lasts    time.Duration
}

var rhythms = []rhythm{
	{"* * * * *", 10 * time.Minute},
	{"* * * * *", 15 * time.Minute},
	{"*/5 * * * *", time.Hour},
	{"@every 90s", 20 * time.Minute},
	{"@every 25s", 4 * time.Minute},
	{"*/10 1-2 * * *", 4 * time.Hour},
	{"0 * * * *", 8 * time.Hour},
}

// longRhythms take days of virtual time.
var longRhythms = []rhythm{
	{"15 2 * * *", 6 * 24 * time.Hour},
	{"*/30 1-3 * * *", 50 * time.Hour},
	{"0 * * * *", 26 * time.Hour},
	{"30 6-16/4 * * 1-5", 6 * 24 * time.Hour},
	{"10,40 8-18 * JAN-DEC MON-FRI", 30 * time.Hour},
}

// clockChanges are times at which the clocks of a zone change, and the end of a month.
var clockChanges = []struct {
	zone string
	at   time.Time
}{
	{"Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC)},
	{"Etc/UTC", time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
}

// crons draws one or two CronJobs in a zone whose clocks are about to change, and what
// users do to them. In the end they are suspended, so that the world comes to rest.
func (d *drawer) crons() {
	rhythm, change := pick(d, rhythms...), pick(d, clockChanges...)
	if d.chance(8) {
		rhythm = pick(d, longRhythms...)
	}
	// The clocks change before the end in at least half of the worlds.
	d.p.begins = change.at.Add(-time.Duration(d.Int64N(int64(min(2*rhythm.lasts, 3*time.Hour)))))
	d.p.calm = rhythm.lasts
	d.p.network.longWatches = rhythm.lasts > 4*time.Hour
	d.p.executor.zone = change.zone
	if d.p.network.longWatches && !d.p.executor.together {
		d.p.executor.replicas = 1 // Renewing a lease for days would take most of the run time.
	}
	for i := range d.among(1, 2) {
		c := d.cron(fmt.Sprintf("cron-%c", 'a'+i), rhythm, change.zone)
		d.p.crons = append(d.p.crons, c)
		on := c.on()
		created := d.within(10*time.Millisecond, time.Minute)
		d.add(step{at: created, who: "user", verb: "create", on: on})
		for range pick(d, 0, 1, 2, 4) {
			d.cronEdit(on, created, change.zone)
		}
		d.add(step{at: d.p.calm, who: "user", verb: "suspend cron", on: on})
	}
}

func (d *drawer) cron(name string, rhythm rhythm, zone string) *cronPlan {
	c := &cronPlan{namespace: namespace, name: name, spec: d.source().Cron(rhythm.schedule)}
	job := &c.spec.JobTemplate.Spec
	job.Completions, job.Parallelism, job.BackoffLimit = new(int32(d.among(1, 2))), new(int32(d.among(1, 2))), new(int32(d.among(0, 2)))
	job.ManagedBy = new(executor.ManagedBy)
	if !d.p.executor.replace {
		c.annotations = map[string]string{wire.CronJobManagedBy: executor.ManagedBy}
		c.spec.Suspend = new(true)
	}
	if d.chance(20) {
		c.setOptions(fmt.Sprintf("{cronJob: {staggerSeconds: %d}}", pick(d, 20, 300, 3600, 86_400)))
	}
	if d.chance(60) {
		c.spec.TimeZone = &zone
	}
	if d.chance(25) {
		job.TTLSecondsAfterFinished = new(int32(pick(d, 0, 30, 100, 3600)))
	}
	trouble := pick(d, 0, 20, 50)
	for range d.among(1, 12) {
		c.fates = append(c.fates, d.fate(trouble))
	}
	return c
}

// slower draws a schedule that has not many more runs than the world is planned for.
func (d *drawer) slower() rhythm {
	if d.p.calm > longestRhythm {
		return rhythm{schedule: pick(d, sparse...)}
	}
	for {
		if r := pick(d, append(longRhythms, rhythms...)...); r.lasts >= d.p.calm/3 {
			return r
		}
	}
}

// cronEdit is one thing that a user does to a CronJob.
func (d *drawer) cronEdit(on string, created time.Duration, zone string) {
	s := d.when(created)
	s.on, s.who = on, "user"
	switch d.IntN(9) {
	case 0:
		s.verb = "suspend cron"
		d.add(s)
		s.verb, s.at = "resume cron", s.at+d.within(time.Second, d.p.calm/2)
	case 1:
		s.verb, s.text = "set schedule", d.slower().schedule
	case 2:
		s.verb, s.text = "set zone", pick(d, zone, "Etc/UTC", "Asia/Kolkata")
	case 3:
		s.verb, s.text = "set concurrency", pick(d, "Allow", "Forbid", "Replace")
	case 4:
		s.verb, s.n = "set starting deadline", pick(d, 10, 100, 3600)
	case 5:
		s.verb, s.n = "set history", d.IntN(3)
	case 6:
		s.verb, s.n = "delete a run", d.IntN(3)
		s.text = pick(d, "Background", "Foreground")
	case 7:
		s.verb, s.d = "create a run of a time to come", d.within(time.Minute, 1000*time.Hour)
	default:
		s.verb, s.text = "delete", pick(d, "Background", "Foreground", "Orphan")
		d.add(s)
		s.verb, s.text, s.at = "create again", "", s.at+d.within(time.Millisecond, time.Minute)
	}
	d.add(s)
}

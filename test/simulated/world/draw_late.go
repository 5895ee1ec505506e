package world

import (
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// lateForTheLease lets two executors start where there is no lease. Both try to create it, and one
// of them is usually too late. Users delete the lease while executors have work: perhaps before
// the one that was too late has read it.
func (d *drawer) lateForTheLease() {
	p := d.p
	d.situated("late for the lease")
	p.executor.replicas, p.executor.together = 2, false
	j, on := p.uncreated(d.among(2, 4))
	j.spec.Completions = new(int32(d.among(20, 50)))
	for range *j.spec.Completions {
		j.fates = append(j.fates, fate{
			start: d.within(time.Millisecond, time.Second), ready: time.Millisecond, run: d.within(500*time.Millisecond, 5*time.Second),
			end: endsWell, linger: time.Second,
		})
	}
	d.add(step{at: d.within(time.Millisecond, 10*time.Second), who: "user", verb: "create", on: on})
	for range d.among(1, 3) {
		d.add(step{at: d.within(5*time.Second, 50*time.Second), who: "user", verb: "delete the lease"})
	}
	p.calm = max(p.calm, 90*time.Second)
}

// unansweredRuns loses the answers to creations of runs: executors notice that only seconds later.
// By then, a run may be gone: it ends soon and must not stay, or a user deletes it at once.
func (d *drawer) unansweredRuns() {
	p := d.p
	d.situated("runs without answer")
	for _, c := range p.crons {
		c.spec.JobTemplate.Spec.TTLSecondsAfterFinished = new(int32(pick(d, 0, 0, 1, 5)))
		for i := range c.fates {
			if f := &c.fates[i]; d.chance(70) {
				f.end, f.restarts = endsWell, 0
				f.start, f.ready, f.run = d.within(time.Millisecond, time.Second), time.Millisecond, d.within(time.Millisecond, time.Second)
			}
		}
		for range d.among(0, 3) {
			at := d.nextRun(c.spec.Schedule, d.moment()) + d.within(100*time.Millisecond, 5*time.Second)
			d.add(step{at: at, who: "user", verb: "delete the last run", on: c.on(), text: "Background"})
		}
	}
	p.faults = append([]*fault{{
		kind: pick(d, lostAnswer, timedOutDone), percent: pick(d, 50, 100), verb: "POST", resource: "jobs", to: p.calm,
		delay: span{500 * time.Millisecond, d.within(time.Second, 15*time.Second)},
	}}, p.faults...)
}

// nextRun is the time of the first run of a schedule after another time.
func (d *drawer) nextRun(schedule string, after time.Duration) time.Duration {
	times, err := cron.ParseStandard(schedule)
	if err != nil {
		panic("the schedules of the plan can be read: " + err.Error())
	}
	zone, err := time.LoadLocation(d.p.executor.zone)
	if err != nil {
		zone = time.UTC
	}
	return times.Next(d.p.begins.Add(after).In(zone)).Sub(d.p.begins)
}

// deadlineWhileDeleted deletes a Job before its deadline. A finalizer or its pods keep it until
// long after the deadline, and nothing else happens to it meanwhile.
func (d *drawer) deadlineWhileDeleted() {
	p := d.p
	j := pick(d, p.jobs...)
	if j.foreign() {
		return
	}
	d.situated("deadline while deleted")
	on, deadline := j.on(), d.within(10*time.Second, 5*time.Minute).Truncate(time.Second)
	created := d.within(10*time.Millisecond, 10*time.Second)
	until := created + deadline + d.within(time.Minute, 15*time.Minute)
	j.spec.Suspend, j.spec.ActiveDeadlineSeconds, j.finalizers = nil, new(int64(deadline/time.Second)), nil
	for i := range j.fates {
		j.fates[i].end, j.fates[i].linger = restless, d.within(time.Second, until)
	}
	p.dropSteps(on)
	d.add(step{at: created, who: "user", verb: "create", on: on})
	d.add(step{at: created + d.within(time.Second, deadline), who: "user", verb: "delete", on: on, text: pick(d, "Background", "Foreground")})
	if d.chance(70) {
		j.finalizers = []string{"example.com/mine"}
		d.add(step{at: until, who: "user", verb: "take finalizers off", on: on})
	}
	p.calm = max(p.calm, until+time.Minute)
}

// deletedWithItsPods deletes a Job in the foreground while its pods run. Few failures, or few
// successes, decide how it ends, and each pod ends in either way when it is told to stop.
// A finalizer may keep the Job after that.
func (d *drawer) deletedWithItsPods() {
	p := d.p
	j := pick(d, p.jobs...)
	if j.foreign() {
		return
	}
	d.situated("deleted with its pods")
	on, created := j.on(), d.within(10*time.Millisecond, 10*time.Second)
	deleted := created + d.within(2*time.Second, 2*time.Minute)
	j.spec.Suspend, j.finalizers = nil, nil
	if j.spec.BackoffLimitPerIndex == nil {
		j.spec.BackoffLimit = new(int32(d.IntN(2)))
	}
	for i := range j.fates {
		f := &j.fates[i]
		if f.obeys, f.linger = d.chance(50), d.within(time.Millisecond, 30*time.Second); d.chance(80) {
			f.end = restless
		}
	}
	p.dropSteps(on)
	d.add(step{at: created, who: "user", verb: "create", on: on})
	d.add(step{at: deleted, who: "user", verb: "delete", on: on, text: "Foreground"})
	if d.chance(50) {
		j.finalizers = []string{"example.com/mine"}
		d.add(step{at: deleted + d.within(time.Minute, 3*time.Minute), who: "user", verb: "take finalizers off", on: on})
	}
	p.calm = max(p.calm, deleted+4*time.Minute)
}

// editedIndexes lets somebody edit the index annotation of some pods.
func (d *drawer) editedIndexes() {
	j := pick(d, d.p.jobs...)
	if !jobspec.Indexed(&j.spec) || j.foreign() {
		return
	}
	d.situated("edited indexes")
	for range d.among(1, 4) {
		d.add(step{at: d.moment(), who: "user", verb: "edit the index of a pod", on: j.on(), n: d.IntN(5), text: pick(d, "0", "1", "2", "9", "none")})
	}
}

// seldom are schedules with two hours or more between two runs.
var seldom = []string{"0 */2 * * *", "30 */3 * * *", "15 1-23/4 * * *", "0 */6 * * *"}

// missedForHours lets executors be away when a run of a CronJob is due, most often for longer than
// an hour: they do not run, or the engine or the API server is away. They are back some minutes
// before the next run.
func (d *drawer) missedForHours() {
	p := d.p
	if p.overWeeks() {
		return
	}
	d.situated("away for hours")
	p.executor.replicas, p.executor.together, p.executor.warmStandby = 1, false, false
	p.network.longWatches = true
	for _, c := range p.crons {
		p.dropSteps(c.on())
	}
	p.dropVerb("set the clock") // It would be wrong for hours.
	c := d.cron("cron-a", rhythm{schedule: pick(d, seldom...)}, p.executor.zone)
	if d.chance(80) {
		c.spec.StartingDeadlineSeconds = nil
	}
	if c.spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && d.chance(70) {
		c.spec.ConcurrencyPolicy = batchv1.AllowConcurrent
	}
	p.crons = []*cronPlan{c}
	on := c.on()
	missed := d.nextRun(c.spec.Schedule, d.within(time.Minute, 4*time.Hour))
	next := d.nextRun(c.spec.Schedule, missed)
	d.add(step{at: d.within(10*time.Millisecond, 20*time.Second), who: "user", verb: "create", on: on})
	d.away(max(time.Minute, missed-d.within(time.Second, 10*time.Minute)), missed+d.within(30*time.Minute, next-missed-10*time.Minute))
	p.calm = next + d.within(2*time.Minute, time.Hour)
	d.add(step{at: p.calm, who: "user", verb: "suspend cron", on: on})
}

// away lets executors do nothing for a while.
func (d *drawer) away(from, to time.Duration) {
	f := &fault{percent: 100, from: from, to: to, delay: span{time.Millisecond, time.Second}}
	switch k := d.IntN(100); {
	case k < 60:
		d.add(step{at: from, who: "executor", verb: "kill", d: to - from})
		return
	case k < 80:
		f.kind = engineAway
	default:
		f.kind = pick(d, unavailable, lostRequest)
	}
	d.p.faults = append([]*fault{f}, d.p.faults...)
}

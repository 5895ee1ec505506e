package world

import (
	"fmt"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// Worlds that reach a limit: the end of the calendar, the room for events, the writes in flight,
// and the size of a request.

// timesWithoutEnd lets users write a deadline that stands for "no limit": many nines, or the
// largest number of seconds that the API server takes. Such a deadline passes after the year
// 9999, and no timestamp holds later times. Runs of the CronJobs take so long that others are due
// meanwhile and have to wait, until their deadlines.
func (d *drawer) timesWithoutEnd() {
	p := d.p
	endless := func() *int64 {
		return new(pick[int64](d, 99_999_999_999, 999_999_999_999, 999_999_999_999, math.MaxInt64))
	}
	for _, c := range p.crons {
		c.spec.StartingDeadlineSeconds, c.spec.ConcurrencyPolicy = endless(), batchv1.ForbidConcurrent
		for i := range c.fates {
			if d.chance(60) {
				c.fates[i].run = d.within(min(time.Minute, p.calm/20), p.calm/4)
			}
		}
	}
	if p.executor.noticing {
		return // The built-in controller may run here, and takes such a deadline for one that has passed.
	}
	for _, j := range p.jobs {
		j.spec.ActiveDeadlineSeconds = endless()
	}
	d.situated("deadlines of thousands of years")
}

// manyEvents lets many small Jobs start and end almost at once, on a slow network. So the events
// of many ends wait to be sent.
func (d *drawer) manyEvents() {
	p := d.p
	if p.executor.maxWrites > 0 {
		return // With few writes in flight, so many Jobs could not start in time.
	}
	p.network.request.most, p.executor.qps = d.within(20*time.Millisecond, 300*time.Millisecond), 0
	from, lasts := d.moment(), d.within(time.Millisecond, 3*time.Second)
	for i := range d.among(30, 60) {
		j := &jobPlan{namespace: namespace, name: fmt.Sprintf("small-%d", i), spec: simpleSpec(1)}
		j.spec.Completions = new(int32(1))
		j.fates = []fate{d.soon()}
		p.jobs = append(p.jobs, j)
		d.add(step{at: from + time.Duration(d.Int64N(int64(lasts))), who: "user", verb: "create", on: j.on()})
	}
	p.calm = max(p.calm, from+lasts+30*time.Second)
	if d.chance(70) { // A lost event, or a dead executor, would excuse that nothing tells of an end.
		p.faults = nil
		p.dropVerb("kill")
	}
	d.situated("many events at once")
}

// soon is the fate of a pod that succeeds within a second.
func (d *drawer) soon() fate {
	part := func() time.Duration { return d.within(time.Millisecond, 300*time.Millisecond) }
	return fate{start: part(), ready: part(), run: part(), end: endsWell, linger: time.Second}
}

// mostBesideHogs is how many Jobs may start in time with the few writes in flight that a hanging
// webhook leaves.
const mostBesideHogs = 20

// plannedAmongMany lets many Jobs wait for few writes in flight, because a webhook hangs in their
// namespace. Pods of Jobs in another namespace get ready just before something is due at a
// certain time: the deadline of the Job, or the next try after a pod has failed. It must
// happen in time.
func (d *drawer) plannedAmongMany() {
	p := d.p
	if len(p.jobs) > mostBesideHogs || p.executor.elected() {
		return
	}
	p.calm = max(p.calm, 90*time.Second)
	if !slices.ContainsFunc(p.jobs, func(j *jobPlan) bool { return j.namespace == hungNamespace }) {
		d.hung()
	}
	for i := range d.among(4, 8) {
		j := &jobPlan{namespace: namespace, name: fmt.Sprintf("planned-%c", 'a'+i), spec: simpleSpec(2)}
		due := time.Duration(d.among(5, 30)) * time.Second
		early := d.within(10*time.Millisecond, 2*time.Second)
		late := fate{start: time.Millisecond, ready: due - early, end: restless, linger: time.Second}
		j.spec.Completions, j.fates = new(int32(2)), []fate{late, late}
		if d.chance(40) {
			first := fate{start: time.Millisecond, ready: time.Millisecond, run: d.within(time.Millisecond, time.Second), end: endsBadly, exit: 1, linger: time.Second}
			late.ready = first.run + firstDelay - early
			j.fates = []fate{first, late}
		} else {
			j.spec.ActiveDeadlineSeconds = new(int64(due / time.Second))
		}
		p.jobs = append(p.jobs, j)
		d.add(step{at: p.calm/8 + d.within(time.Millisecond, p.calm/4), who: "user", verb: "create", on: j.on()})
	}
	d.situated("planned while others wait")
}

// tooLargeOnce lets an engine refuse requests as too large for a few seconds. After that, most
// indexes of a Job fail again and again, so that they wait long for their next tries. A few others
// run for long before they fail the first time. They have to wait for a short time only.
func (d *drawer) tooLargeOnce() {
	p := d.p
	if p.executor.together {
		return // Two active executors get a conflict at each of the many ends, which takes much real time.
	}
	n, long := d.among(6, 14), d.among(1, 3)
	j := p.jobs[0]
	j.spec, j.fates, j.annotations = simpleSpec(n), nil, nil
	j.spec.CompletionMode, j.spec.Completions = new(batchv1.IndexedCompletion), new(int32(n))
	j.spec.BackoffLimitPerIndex = new(int32(d.among(12, 40)))
	p.calm = max(p.calm, d.within(time.Minute, 5*time.Minute))
	for i := range 20 * n {
		f := fate{start: time.Millisecond, ready: time.Millisecond, run: d.within(time.Millisecond, time.Second), end: endsBadly, exit: 1, linger: time.Second}
		if i < long {
			f.run = p.calm + d.within(time.Minute, 35*time.Minute)
		}
		j.fates = append(j.fates, f)
	}
	p.executor.leastRows, p.executor.maxRows, p.executor.largeRequest = d.among(2, 3), 0, d.IntN(1000)
	from := d.within(15*time.Second, p.calm-10*time.Second)
	narrow := &fault{kind: engineNarrow, percent: 100, from: from, to: from + d.within(500*time.Millisecond, 10*time.Second)}
	p.faults = append([]*fault{narrow}, p.faults...)
	d.situated("too large for a moment")
}

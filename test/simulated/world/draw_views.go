package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// uncreated makes the first Job a simple one with this many pods at once. Nothing happens to it: the
// caller adds its creation.
func (p *plan) uncreated(parallelism int) (j *jobPlan, on string) {
	j = p.jobs[0]
	j.spec, j.fates = simpleSpec(parallelism), nil
	p.dropSteps(j.on())
	return j, j.on()
}

// simpleJob makes the first Job a simple one with this many pods at once, created within the
// first second. Nothing else happens to it.
func (d *drawer) simpleJob(parallelism int) (j *jobPlan, on string, created time.Duration) {
	j, on = d.p.uncreated(parallelism)
	created = d.within(time.Millisecond, time.Second)
	d.add(step{at: created, who: "user", verb: "create", on: on})
	return j, on, created
}

// recordedPodRuns lets pods run again that a status has recorded as failed: the pods of a node
// that was given up too early. Meanwhile no finalizer can be released. A user scales the Job
// down, and takes finalizers off by hand.
func (d *drawer) recordedPodRuns() {
	p := d.p
	d.situated("recorded pods run again")
	n := d.among(2, 5)
	j, on, _ := d.simpleJob(n)
	back := time.Duration(0)
	for i := range n {
		f := fate{start: d.within(time.Millisecond, time.Second), ready: time.Millisecond, end: restless, linger: d.within(time.Millisecond, time.Second)}
		if i == 0 || d.chance(40) {
			f.end, f.run, f.away = returns, d.within(2*time.Second, 5*time.Second), d.within(time.Second, 10*time.Second)
			back = max(back, 2*time.Second+f.run+f.away)
		}
		j.fates = append(j.fates, f)
	}
	for range n { // Their replacements.
		j.fates = append(j.fates, fate{start: time.Second, ready: time.Millisecond, end: restless, linger: time.Second})
	}
	until := back + d.within(10*time.Second, 40*time.Second)
	d.add(step{at: back + d.within(time.Millisecond, 5*time.Second), who: "user", verb: "set parallelism", on: on, n: d.IntN(n)})
	for i := range n {
		d.add(step{at: back + d.within(time.Second, 10*time.Second), who: "user", verb: "take the tracking finalizer off", on: on, n: i})
	}
	p.faults = append([]*fault{{
		kind: pick(d, unavailable, serverError, timedOut, lostRequest), percent: 100, verb: "PATCH", resource: "pods", to: until,
		delay: span{time.Millisecond, time.Second},
	}}, p.faults...)
	p.calm = max(p.calm, until)
}

// statusAfterTheEnd lets another controller change the status of Jobs that have just ended, before
// the executor knows that its write of the end took effect: the answer is lost, most reads
// fail, and the watch is late.
func (d *drawer) statusAfterTheEnd() {
	p := d.p
	d.situated("status changed at the end")
	from := d.within(2*time.Second, 6*time.Second) // The executor has listed the Jobs by then.
	to := from + d.within(30*time.Second, 90*time.Second)
	p.calm = max(p.calm, to)
	for _, j := range p.jobs {
		for i := range j.fates {
			j.fates[i].run = d.within(time.Second, 10*time.Second)
		}
		d.add(step{ends: true, at: d.within(time.Millisecond, 2*time.Second), who: "other", verb: "add a condition", on: j.on()})
	}
	delay := span{time.Millisecond, d.within(10*time.Millisecond, 2*time.Second)}
	p.faults = append([]*fault{
		{kind: pick(d, lostAnswer, timedOutDone), percent: pick(d, 60, 100), verb: "PUT", resource: "jobs", from: from, to: to, delay: delay},
		{kind: pick(d, lostRequest, unavailable, timedOut), percent: d.among(40, 80), verb: "GET", resource: "jobs", from: from, to: to, delay: delay},
		{kind: watchLag, percent: 100, resource: "jobs", from: from, to: to, delay: span{5 * time.Second, d.within(6*time.Second, 20*time.Second)}},
	}, p.faults...)
}

// manyPodsAtADeadline creates many pods at once. Then come more pods, and soon after that the Job's
// deadline. If an executor is slow to handle events, it has deleted, counted and released the
// later pods before it handles the event of their creation. By then no pod can be deleted.
func (d *drawer) manyPodsAtADeadline() {
	p := d.p
	d.situated("many pods at a deadline")
	e := &p.executor
	e.maxChanges, e.maxUncounted, e.qps = 0, 0, 0
	p.network.request.most = min(p.network.request.most, 10*time.Millisecond)
	n := d.among(20, 40)
	j, on, created := d.simpleJob(n)
	deadline := time.Duration(d.among(2, 3)) * time.Second
	j.spec.ActiveDeadlineSeconds = new(int64(deadline / time.Second))
	for range 2 * n {
		j.fates = append(j.fates, fate{
			start: d.within(time.Millisecond, 10*time.Millisecond), ready: d.within(time.Millisecond, 100*time.Millisecond), end: restless,
			linger: d.within(time.Millisecond, 500*time.Millisecond),
		})
	}
	j.fates[0].linger = d.within(10*time.Second, 40*time.Second) // Until then the Job is not finished.
	began := max(created, 200*time.Millisecond)
	d.add(step{at: began + deadline - d.within(100*time.Millisecond, 1500*time.Millisecond), who: "user", verb: "set parallelism", on: on, n: n + d.among(3, 15)})
	from := began + deadline + d.within(100*time.Millisecond, 2*time.Second)
	to := from + d.within(10*time.Second, 40*time.Second)
	p.faults = append([]*fault{{kind: unavailable, percent: 100, verb: "DELETE", resource: "pods", from: from, to: to}}, p.faults...)
	d.alone(80) // With others, all of this rarely happens in time.
	p.calm = max(p.calm, to)
}

// unseenLives lets two active executors work on a Job whose pods succeed soon, and are deleted
// at once by somebody who clears up. The watches of pods are very late, so the executors
// list pods again and again. Many a pod was created, counted and released by one executor
// before the other one lists the pods, and the watch shows it to that one later.
func (d *drawer) unseenLives() {
	p := d.p
	d.situated("unseen lives of pods")
	p.executor.replicas, p.executor.together = 2, true
	n := d.among(2, 4)
	j, _, _ := d.simpleJob(n)
	j.spec.Completions = new(int32(n * d.among(3, 6)))
	if d.chance(30) {
		j.spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	for range 10 * n {
		f := fate{start: d.within(time.Millisecond, 100*time.Millisecond), ready: time.Millisecond, end: cleared, linger: d.within(time.Millisecond, 100*time.Millisecond)}
		f.run = d.within(10*time.Millisecond, 3*time.Second)
		j.fates = append(j.fates, f)
	}
	until := d.within(30*time.Second, time.Minute)
	slow, late := d.within(100*time.Millisecond, 3*time.Second), d.within(3*time.Second, 20*time.Second)
	p.faults = append([]*fault{
		{kind: engineSlow, percent: 100, to: until, delay: span{slow / 10, slow}},
		{kind: watchLag, percent: 100, resource: "pods", to: until, delay: span{late / 4, late}},
		{kind: lostAnswer, percent: d.among(10, 50), verb: "POST", resource: "pods", to: until, delay: span{time.Millisecond, time.Second}},
	}, p.faults...)
	p.calm = max(p.calm, until)
}

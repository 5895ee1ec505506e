package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/jobspec"
)

// simpleSpec is the spec of a managed Job with this many pods at once.
func simpleSpec(parallelism int) batchv1.JobSpec {
	spec := jobspec.New()
	spec.Parallelism, spec.ManagedBy = new(int32(parallelism)), new(executor.ManagedBy)
	return spec
}

// lastMoment changes a finished Job while an executor is about to delete it because its
// time to live is over: a user lets it live longer, or replaces it by another Job of its
// name.
func (d *drawer) lastMoment() {
	p := d.p
	for _, j := range p.jobs {
		if j.foreign() {
			continue
		}
		j.spec.TTLSecondsAfterFinished = new(int32(d.among(1, 5)))
		delete(j.annotations, wire.Policy)
		s := step{expires: true, at: d.within(time.Microsecond, 3*p.network.request.most), who: "user", on: j.on()}
		if d.chance(60) {
			s.verb, s.n = "set time to live", 600
			d.add(s)
			continue
		}
		s.verb, s.text = "delete", "Background"
		d.add(s)
		s.verb, s.text, s.at = "create again", "", s.at+d.within(time.Microsecond, 20*time.Millisecond)
		d.add(s)
	}
	p.calm = max(p.calm, 2*time.Minute)
}

// unansweredStatuses loses the answers to status writes, and lets the reads fail that would show
// at once whether the writes took effect.
func (d *drawer) unansweredStatuses() {
	p := d.p
	p.unanswered, p.calm = true, max(p.calm, time.Minute)
	from := d.within(2*time.Second, 6*time.Second)                   // The executor has listed the Jobs by then.
	to := min(p.calm, from+d.within(20*time.Second, 90*time.Second)) // No view gets too old.
	delay := span{time.Millisecond, d.within(10*time.Millisecond, 2*time.Second)}
	p.faults = append([]*fault{
		{kind: pick(d, lostAnswer, timedOutDone), percent: pick(d, 60, 100), verb: "PUT", resource: "jobs", from: from, to: to, delay: delay},
		{kind: pick(d, lostRequest, unavailable, timedOut), percent: 100, verb: "GET", resource: "jobs", from: from, to: to, delay: delay},
	}, p.faults...)
}

// listsWithoutPods hides, from lists, pods that exist: somebody takes their labels for
// a while. Meanwhile the executor must list the pods, because it does not know what
// became of creations, and its watch is late.
func (d *drawer) listsWithoutPods() {
	n := d.among(2, 4)
	j, on := d.p.uncreated(n)
	for range 3 * n {
		f := d.fate(10)
		f.start, f.ready = d.within(time.Millisecond, time.Second), time.Millisecond
		f.run, f.end = d.within(30*time.Second, 2*time.Minute), endsWell
		j.fates = append(j.fates, f)
	}
	from := d.within(5*time.Second, 10*time.Second)
	to := from + d.within(10*time.Second, 30*time.Second)
	d.add(step{at: d.within(time.Millisecond, time.Second), who: "user", verb: "create", on: on})
	d.add(step{at: from + d.within(time.Second, 3*time.Second), who: "user", verb: "set parallelism", on: on, n: n + d.among(1, 3)})
	for i := range d.among(1, n) {
		d.add(step{
			at: from + d.within(10*time.Millisecond, 3*time.Second), who: "webhook", verb: "relabel and label back", on: on, n: i,
			d: d.within(5*time.Second, 15*time.Second),
		})
	}
	d.p.faults = append([]*fault{
		{kind: lostAnswer, percent: pick(d, 60, 100), verb: "POST", resource: "pods", from: from, to: to, delay: span{time.Millisecond, time.Second}},
		{kind: watchLag, percent: 100, resource: "pods", from: from, to: to, delay: span{5 * time.Second, d.within(6*time.Second, 20*time.Second)}},
	}, d.p.faults...)
	d.p.calm = max(d.p.calm, to+20*time.Second)
}

// statusesWhileWaiting lets two active executors write the statuses of the same Jobs.
// Their engine is slow, they decide on one Job at a time, and their views of pods are
// late. So a status of one executor arrives while the other, which has just read the Job,
// waits for a decision.
func (d *drawer) statusesWhileWaiting() {
	p := d.p
	p.executor.replicas, p.executor.together, p.executor.workers = 2, true, 1
	for _, j := range p.jobs {
		if j.foreign() {
			continue
		}
		j.spec.Parallelism = new(int32(d.among(3, 6)))
		for i := range j.fates {
			j.fates[i].run = d.within(time.Second, 20*time.Second)
		}
	}
	slow, late := d.within(200*time.Millisecond, 3*time.Second), d.within(2*time.Second, 20*time.Second)
	p.faults = append([]*fault{
		{kind: engineSlow, percent: 100, to: p.calm, delay: span{slow / 2, slow}},
		{kind: watchLag, percent: 100, resource: "pods", to: p.calm, delay: span{late / 2, late}},
	}, p.faults...)
}

// unseenSuccesses lets pods succeed shortly after the pod that meets the Job's success
// policy, while the executor's view of pods is late. So the executor deletes pods that it
// still sees running, and that have succeeded. Some deletions fail, so what the others did
// is part of the next decision.
func (d *drawer) unseenSuccesses() {
	p := d.p
	n := d.among(4, 20)
	j, on := p.uncreated(n)
	j.spec.CompletionMode, j.spec.Completions = new(batchv1.IndexedCompletion), new(int32(n))
	j.spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
	if d.chance(50) {
		j.spec.BackoffLimitPerIndex = new(int32(d.among(0, 1)))
	}
	d.add(step{at: d.within(time.Millisecond, time.Second), who: "user", verb: "create", on: on})
	late := d.within(time.Second, 8*time.Second)
	for i := range 2 * n {
		f := fate{start: time.Millisecond, ready: time.Millisecond, run: 3 * time.Second, end: endsWell, linger: d.within(time.Millisecond, 5*time.Second)}
		if i > 0 {
			f.run += d.within(time.Millisecond, late)
		}
		j.fates = append(j.fates, f)
	}
	p.calm = max(p.calm, 30*time.Second)
	p.faults = append([]*fault{
		{kind: watchLag, percent: 100, resource: "pods", to: p.calm, delay: span{late / 2, late}},
		{kind: pick(d, lostAnswer, serverError), percent: pick(d, 20, 40), verb: "DELETE", resource: "pods", to: p.calm, delay: span{time.Millisecond, 20 * time.Millisecond}},
	}, p.faults...)
}

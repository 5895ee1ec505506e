package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// In the situations of this file, pods or Jobs are left over for a while: an executor does not see
// yet that they have ended, or a policy guards them.

// finishedBeforeItsPods lets two executors be active at once, and shows them the ends of pods
// late, each at another time. So one of them finishes a Job whose pods still run in the view of
// the other. The pods run for minutes: by then, nothing is left of the pods that both created.
func (d *drawer) finishedBeforeItsPods() {
	p := d.p
	d.situated("finished before its pods")
	p.executor.replicas, p.executor.together = 2, true
	n := d.among(1, 5)
	j, on := p.uncreated(n)
	j.spec.Completions = new(int32(n))
	if d.chance(50) {
		j.spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	runs := d.within(150*time.Second, 4*time.Minute)
	for range 3 * n {
		f := d.fate(3)
		f.start, f.ready = d.within(time.Millisecond, time.Second), d.within(time.Millisecond, time.Second)
		f.run = runs + d.within(time.Millisecond, 10*time.Second)
		j.fates = append(j.fates, f)
	}
	d.add(step{at: d.within(time.Millisecond, time.Second), who: "user", verb: "create", on: on})
	p.calm = max(p.calm, runs+time.Minute)
	late := &fault{
		kind: watchLag, percent: 100, resource: "pods", from: runs - 5*time.Second, to: p.calm,
		delay: span{time.Millisecond, d.within(5*time.Second, 30*time.Second)},
	}
	p.faults = append([]*fault{late}, p.faults...)
	d.alone(60) // Other faults may hide the end of the Job as well.
}

// suspendedWithUnreleased suspends a Job with limits per index until the end. Before that, a
// policy refuses to release some pods. So when the policy is gone, pods may be left that have
// failed and that the status has recorded, and nothing replaces them any more: the suspension has
// deleted the pods that did.
func (d *drawer) suspendedWithUnreleased() {
	p := d.p
	d.situated("suspended with unreleased pods")
	n := d.among(1, 4)
	j, on := p.uncreated(n)
	j.spec.CompletionMode, j.spec.Completions = new(batchv1.IndexedCompletion), new(int32(n))
	j.spec.BackoffLimitPerIndex = new(int32(d.among(1, 3)))
	if d.chance(40) {
		j.spec.PodReplacementPolicy = new(pick(d, batchv1.Failed, batchv1.TerminatingOrFailed))
	}
	for i := range 5 * n {
		f := fate{
			start: d.within(time.Millisecond, time.Second), ready: d.within(time.Millisecond, time.Second), run: d.within(time.Second, 8*time.Second),
			end: endsBadly, exit: pick(d, jobspec.Exits...), linger: d.within(time.Millisecond, 5*time.Second),
		}
		if i >= n && d.chance(60) { // Most of those that replace a failed one run when the Job is suspended.
			f.run = d.within(20*time.Second, 3*time.Minute)
		}
		j.fates = append(j.fates, f)
	}
	at := d.within(15*time.Second, 90*time.Second)
	d.add(step{at: d.within(time.Millisecond, time.Second), who: "user", verb: "create", on: on})
	d.add(step{at: at, who: "user", verb: "suspend", on: on})
	p.calm = max(p.calm, at+20*time.Second)
	p.faults = append([]*fault{{kind: guarded, percent: d.among(20, 60), verb: "PATCH", resource: "pods", to: p.calm}}, p.faults...)
	d.alone(50) // Other faults may delay the suspension.
}

// punctualRuns lets a policy refuse, from begin to end, that some finished runs of CronJobs are
// deleted, although few may be kept. A run that does not start within seconds is lost.
func (d *drawer) punctualRuns() {
	p := d.p
	d.situated("punctual runs beside a guarded history")
	for _, c := range p.crons {
		c.spec.StartingDeadlineSeconds = new(int64(d.among(10, 40)))
		c.spec.SuccessfulJobsHistoryLimit, c.spec.FailedJobsHistoryLimit = new(d.Int32N(2)), new(d.Int32N(2))
	}
	p.faults = append([]*fault{{kind: guarded, percent: d.among(20, 60), verb: "DELETE", resource: "jobs", to: p.calm}}, p.faults...)
	d.alone(70) // Other faults would excuse a delay.
}

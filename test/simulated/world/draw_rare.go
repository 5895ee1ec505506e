package world

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// rare draws what only a few worlds have, because it is expensive, or because its
// events rarely coincide. Each part draws separately, so the rest of the plan is the
// same without it.
func (d *drawer) rare() {
	for i, r := range []struct {
		percent int
		fault   bool
		fits    func(*plan) bool
		draw    func()
	}{
		{3, false, withJobs, d.large},
		{3, true, withJobs, d.lateSuccess},
		{80, true, withJobs, d.rivals},
		{3, true, withJobs, d.hung},
		{5, true, anyPlan, func() { d.strange(engineGarbled) }},
		{4, true, anyPlan, func() { d.strange(engineEarlier) }},
		{8, false, withJobs, d.crashLoop},
		{6, true, anyPlan, d.unseenWrites},
		{3, true, briefWithJobs, d.deadlineWhileSuspended},
		{4, true, withJobs, d.failuresAtTheEndOfTheList},
		{6, true, withJobs, d.lastMoment},
		{4, true, withJobs, d.listsWithoutPods},
		{4, true, withJobs, d.statusesWhileWaiting},
		{6, true, withJobs, d.secondController},
		{1, false, withCrons, d.weeks},
		{1, true, anyPlan, d.unansweredStatuses},
		{1, true, briefWithJobs, d.unseenSuccesses},
		{2, true, (*plan).brief, d.guard},
		{15, true, briefWithCrons, d.askForRuns},
		{6, true, anyPlan, d.strangers},
		{4, true, anyPlan, d.timesWithoutEnd},
		{1, true, withJobs, d.manyEvents},
		{2, true, briefWithJobs, d.plannedAmongMany},
		{1, true, withJobs, d.tooLargeOnce},
		{1, true, withJobs, d.recordedPodRuns},
		{1, true, withJobs, d.statusAfterTheEnd},
		{1, true, withJobs, d.manyPodsAtADeadline},
		{1, true, withJobs, d.unseenLives},
		{2, true, withJobs, d.lateForTheLease},
		{4, true, withCrons, d.unansweredRuns},
		{2, true, briefWithJobs, d.deadlineWhileDeleted},
		{4, true, withCrons, d.missedForHours},
		{1, true, briefWithJobs, d.finishedBeforeItsPods},
		{1, true, briefWithJobs, d.suspendedWithUnreleased},
		{6, true, briefWithCrons, d.punctualRuns},
		{4, false, withJobs, d.deletedWithItsPods},
		{4, false, withJobs, d.editedIndexes},
		{100, false, withCrons, d.byHand},
		{2, true, briefWithJobs, d.alteredPods},
		{2, false, withJobs, d.scaledDown},
		{1, false, withJobs, d.copiedPod},
	} {
		d.begin(uint64(100 + i))
		if d.chance(r.percent) && (!r.fault || !d.faultless) && r.fits(d.p) {
			r.draw()
		}
	}
}

func anyPlan(*plan) bool { return true }

func withJobs(p *plan) bool { return len(p.jobs) > 0 }

func withCrons(p *plan) bool { return len(p.crons) > 0 }

// brief reports whether the world is so short that something may be refused until its end: what is
// refused is tried again every minute.
func (p *plan) brief() bool { return p.calm <= longestTrouble }

func briefWithJobs(p *plan) bool { return p.brief() && withJobs(p) }

func briefWithCrons(p *plan) bool { return p.brief() && withCrons(p) }

// alone takes all faults but the first away, in percent of 100 cases.
func (d *drawer) alone(percent int) {
	if d.chance(percent) {
		d.p.faults = d.p.faults[:min(1, len(d.p.faults))]
	}
}

// situated notes that the plan has a rare situation, so that its worlds can be counted and chosen.
func (d *drawer) situated(name string) { d.p.situations = append(d.p.situations, name) }

// large gives the first Job many pods, and lowers the executor's limits. So lists are
// truncated, and many ended pods are only counted.
func (d *drawer) large() {
	j, e := d.p.jobs[0], &d.p.executor
	n := int32(d.among(20, 60))
	d.source().Widen(&j.spec, n)
	trouble := pick(d, 5, 20, 50)
	for range n * 3 / 2 {
		f := d.fate(trouble)
		f.start, f.ready = d.within(time.Millisecond, time.Second), d.within(time.Millisecond, time.Second)
		f.run = d.within(time.Millisecond, 10*time.Second) // Many end at once.
		j.fates = append(j.fates, f)
	}
	e.leastRows = d.among(4, 16)
	if d.chance(70) {
		e.maxRows = d.among(2, 12)
	}
	if d.chance(60) {
		e.maxUncounted = d.among(2, 12)
	}
	if d.chance(60) {
		e.maxChanges = d.among(3, 20)
	}
	e.largeRequest = d.among(500, 3000)
	if d.faultless {
		return
	}
	f := &fault{kind: pick(d, engineNarrow, engineBusy), percent: pick(d, 10, 50, 100)}
	f.from, f.to = d.window()
	d.p.faults = append(d.p.faults, f)
}

// rivals freezes the executor that holds the lease, lets the API server hang for it
// alone, or deletes the lease.
func (d *drawer) rivals() {
	p := d.p
	if !p.executor.elected() {
		return
	}
	s := step{at: d.moment(), who: "executor", n: d.IntN(2)}
	switch k := d.IntN(100); {
	case k < 60:
		s.verb, s.d = "freeze", d.standstill()
		if d.chance(70) {
			s.text = atRenewal
		}
	case k < 80:
		s.who, s.verb, s.d = "server", "hang for it", d.standstill()
	default:
		s.who, s.verb = "user", "delete the lease"
	}
	d.add(s)
	p.calm = max(p.calm, s.at+s.d+time.Minute)
}

// standstill draws how long a process is frozen: for a while, or longer than its lease.
func (d *drawer) standstill() time.Duration {
	if d.chance(30) {
		return d.within(time.Second, 100*time.Second)
	}
	return d.within(130*time.Second, 5*time.Minute)
}

// hung lets an admission webhook hang in a namespace with more Jobs than executors may
// have writes in flight. The Jobs of other namespaces must not wait for it.
func (d *drawer) hung() {
	p := d.p
	if p.executor.elected() {
		return
	}
	p.executor.maxWrites, p.executor.qps = d.among(4, 6), 0
	for i := range d.among(6, 12) {
		j := &jobPlan{namespace: hungNamespace, name: fmt.Sprintf("hog-%c", 'a'+i), spec: simpleSpec(d.among(1, 3))}
		j.spec.Completions = new(int32(d.among(1, 3)))
		p.jobs = append(p.jobs, j)
		d.add(step{at: d.within(time.Millisecond, p.calm/8+1), who: "user", verb: "create", on: j.on()})
	}
	f := &fault{
		kind: hangs, percent: 100, verb: "POST", resource: "pods", namespace: hungNamespace,
		to: p.calm, delay: span{15 * time.Second, 29 * time.Second},
	}
	p.faults = append([]*fault{f}, p.faults...)
	d.alone(60) // Other faults would excuse a delay.
}

// guard lets a policy refuse, from begin to end, that some Jobs are deleted or that some pods
// are released. That must delay nothing else.
func (d *drawer) guard() {
	f := &fault{kind: guarded, percent: d.among(20, 60), verb: "PATCH", resource: "pods", to: d.p.calm}
	if len(d.p.crons) > 0 {
		f.verb, f.resource = "DELETE", "jobs"
	}
	d.p.faults = append([]*fault{f}, d.p.faults...)
	d.alone(60) // Other faults would excuse a delay.
}

// askForRuns lets users ask for runs of CronJobs. In half of these worlds a policy refuses such
// Jobs, and only such ones, from begin to end. The runs of the schedule must start all the same.
func (d *drawer) askForRuns() {
	for i := range d.among(1, 3) {
		c := pick(d, d.p.crons...)
		d.add(step{at: d.moment(), who: "user", verb: "ask for a run", on: c.on(), text: fmt.Sprint(i)})
	}
	if d.chance(50) {
		d.p.faults = append([]*fault{{kind: guarded, percent: 100, verb: "POST", resource: "jobs", to: d.p.calm}}, d.p.faults...)
	}
	d.alone(50) // Other faults would excuse a delay.
}

// strange replaces the engine by another one for a while.
func (d *drawer) strange(kind faultKind) {
	f := &fault{kind: kind, percent: pick(d, 10, 50, 100)}
	if f.from, f.to = d.window(); d.p.brief() && d.chance(50) {
		f.from, f.to = 0, d.p.calm
	}
	d.p.faults = append([]*fault{f}, d.p.faults...)
}

// crashLoop lets containers of a Job restart again and again, in pods that never end.
func (d *drawer) crashLoop() {
	j := pick(d, d.p.jobs...)
	if j.spec.PodFailurePolicy != nil {
		return // It allows no restarts.
	}
	j.spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	for i := range j.fates {
		if f := &j.fates[i]; d.chance(40) {
			f.end, f.restarts = restless, int32(d.among(1, 7))
		}
	}
}

// deadlineWhileSuspended suspends a Job, whose pods never end, until after its deadline. The
// Job keeps its start time.
func (d *drawer) deadlineWhileSuspended() {
	p := d.p
	p.executor.keepStartTime = true
	j := pick(d, p.jobs...)
	deadline := p.calm + 5*time.Second
	j.spec.ActiveDeadlineSeconds = new(int64(deadline / time.Second))
	for i := range j.fates {
		j.fates[i].end = restless
	}
	on, at := j.on(), p.calm/2+d.within(time.Second, p.calm/2)
	until := at + deadline + d.within(time.Second, deadline)
	d.add(step{at: at, who: "user", verb: "suspend", on: on})
	d.add(step{at: at + deadline, who: "user", verb: "label", on: on, text: "seen=late"}) // The executor looks at the Job again.
	d.add(step{at: until, who: "user", verb: "resume", on: on})
	p.calm = until + time.Minute
}

// failuresAtTheEndOfTheList lets many pods of a work queue end almost at once, while no
// finalizer can be released. Of these, the pods that fail the Job end last, so a truncated
// list shows only successes until long after the last success.
func (d *drawer) failuresAtTheEndOfTheList() {
	j, e, n := d.p.jobs[0], &d.p.executor, d.among(8, 20)
	j.spec, j.fates = simpleSpec(n), nil
	j.spec.PodReplacementPolicy = new(batchv1.Failed)
	j.spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
	}}}
	for i := range n {
		f := fate{start: time.Millisecond, ready: time.Millisecond, run: 3*time.Second + d.within(time.Millisecond, 100*time.Millisecond), end: endsWell, linger: time.Second}
		switch i {
		case 0:
			f.run = d.within(3*time.Minute, 5*time.Minute)
		case 1, 2:
			f.run, f.end, f.exit = f.run+200*time.Millisecond, endsBadly, 42
		}
		j.fates = append(j.fates, f)
	}
	e.leastRows, e.maxRows = d.among(2, 4), d.among(2, 4)
	until := d.p.calm + 6*time.Minute
	d.p.faults = append([]*fault{{kind: unavailable, percent: 100, verb: "PATCH", resource: "pods", to: until}}, d.p.faults...)
	d.p.calm = until
}

// unseenWrites hides pods and the answers to writes of pods at the same time, so that for a
// long time an executor does not know whether its own writes took effect.
func (d *drawer) unseenWrites() {
	from, to := d.window()
	d.p.faults = append(d.p.faults,
		&fault{
			kind: pick(d, lostAnswer, timedOutDone), percent: pick(d, 30, 60, 100), verb: pick(d, "POST", "POST", "PATCH", "DELETE"),
			resource: "pods", from: from, to: to, delay: span{time.Millisecond, d.within(10*time.Millisecond, 2*time.Second)},
		},
		&fault{kind: watchLag, percent: 100, resource: "pods", from: from, to: to, delay: span{5 * time.Second, d.within(6*time.Second, 20*time.Second)}},
	)
	if d.chance(50) {
		d.p.faults = append(d.p.faults, &fault{kind: staleList, percent: pick(d, 30, 100), from: from, to: to})
		for range d.among(1, 3) {
			d.add(step{at: from + time.Duration(d.Int64N(int64(to-from)+1)), who: "server", verb: "break watches"})
		}
	}
}

// secondController lets the built-in Job controller run for a while beside executors that
// replace it. In some worlds it never runs, and executors must not say that it does.
func (d *drawer) secondController() {
	p := d.p
	if !p.executor.replace {
		return
	}
	p.executor.noticing, p.executor.standDown = true, d.chance(50)
	if d.chance(20) {
		return
	}
	from := d.moment()
	if d.chance(30) {
		from = d.within(time.Millisecond, time.Second)
	}
	d.add(step{at: from, who: "operator", verb: "switch the built-in controller on"})
	if d.chance(70) {
		d.add(step{at: from + d.within(time.Second, p.calm), who: "operator", verb: "switch the built-in controller off"})
	}
}

// lateSuccess deletes pods, so that they are recorded as failed, and lets them succeed
// later while their release is delayed.
func (d *drawer) lateSuccess() {
	j := d.p.jobs[0]
	if j.spec.PodFailurePolicy != nil {
		return // Deleted pods count only after they have ended.
	}
	j.spec.PodReplacementPolicy = new(batchv1.TerminatingOrFailed)
	for i := range j.fates {
		if f := &j.fates[i]; d.chance(60) {
			f.end, f.obeys = removed, true
			f.run, f.linger = d.within(time.Second, 20*time.Second), d.within(time.Second, 30*time.Second)
		}
	}
	f := &fault{kind: pick(d, unavailable, serverError, putBack), percent: 100, verb: "PATCH", resource: "pods", to: d.p.calm}
	d.p.faults = append(d.p.faults, f)
}

// byHand lets users create Jobs from a CronJob, beside its runs. Some of them stay suspended. The tools of some clouds write owner
// references with a version that was removed.
func (d *drawer) byHand() {
	for _, c := range d.p.crons {
		d.add(step{at: d.moment(), who: "user", verb: "create a run by hand", on: c.on(), text: pick(d, "batch/v1", "batch/v1beta1"), n: d.IntN(2)})
	}
}

// strangers lets somebody without rights here make pods and Jobs in another namespace whose owner
// references have the UID of a Job or a CronJob of this one. They are nobody's.
func (d *drawer) strangers() {
	p := d.p
	for range d.among(1, 4) {
		s := step{at: d.moment(), who: "stranger", d: d.within(time.Second, 3*time.Minute)}
		switch {
		case len(p.crons) > 0:
			c := pick(d, p.crons...)
			s.verb, s.on, s.d = "forge a run", c.on(), d.within(time.Minute, 5*time.Minute) // Until a run is due.
		case len(p.jobs) > 0:
			j := pick(d, p.jobs...)
			s.verb, s.on = "forge a pod", j.on()
		default:
			return
		}
		d.add(s)
		p.calm = max(p.calm, s.at+s.d+time.Minute)
	}
}

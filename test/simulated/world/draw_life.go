package world

import (
	"fmt"
	"time"
)

// life draws what happens to a Job: when it is created, and what users and other
// controllers do to it.
func (d *drawer) life(j *jobPlan) {
	on := j.on()
	created := d.within(10*time.Millisecond, d.p.calm/2)
	d.add(step{at: created, who: "user", verb: "create", on: on})
	if valueOr(j.spec.Suspend, false) {
		d.queue(on, created)
	}
	for range pick(d, 0, 0, 1, 1, 2, 3, 5) {
		d.act(j, on, created)
	}
	if d.chance(25) {
		d.end(on, created)
	}
	if len(j.finalizers) > 0 {
		d.add(step{at: d.p.calm, who: "user", verb: "take finalizers off", on: on})
	}
	if j.foreign() && d.chance(60) {
		for range d.among(1, 3) {
			d.foreign(on, created)
		}
	}
}

func (j *jobPlan) foreign() bool {
	return j.spec.ManagedBy != nil && *j.spec.ManagedBy == foreignManager
}

// queue is a queue controller: it creates a Job suspended, updates it at once, and
// resumes it later.
func (d *drawer) queue(on string, created time.Duration) {
	if d.chance(50) {
		d.add(step{at: created + d.within(time.Microsecond, 20*time.Millisecond), who: "queue", verb: "label", on: on, text: "queue=q"})
	}
	if !d.chance(85) {
		return
	}
	at := created + d.within(time.Microsecond, d.p.calm)
	d.add(step{at: at, who: "queue", verb: "resume", on: on})
	if d.chance(30) {
		d.add(step{at: at + d.within(time.Millisecond, 30*time.Second), who: "queue", verb: "suspend", on: on})
		d.add(step{at: at + d.within(time.Millisecond, 120*time.Second), who: "queue", verb: "resume", on: on})
	}
}

// act is one thing that an actor does to a Job or to its pods.
func (d *drawer) act(j *jobPlan, on string, created time.Duration) {
	s := d.when(created)
	s.on, s.who = on, "user"
	switch k := d.IntN(100); {
	case k < 15:
		s.verb = "suspend"
		d.add(s)
		s.verb, s.at = "resume", s.at+d.within(time.Millisecond, 60*time.Second)
	case k < 33:
		s.verb, s.n = "set parallelism", d.among(0, 6)
	case k < 45 && j.spec.CompletionMode != nil && j.spec.SuccessPolicy == nil:
		s.verb, s.n = "resize", d.among(1, 6)
	case k < 50:
		s.verb, s.n = "set deadline", pick(d, 1, 5, 60, 600)
	case k < 55:
		s.verb, s.n = "set backoff limit", d.among(0, 6)
	case k < 60:
		s.verb, s.n = "set time to live", pick(d, 0, 10, 600)
	case k < 65:
		s.verb, s.text = "label", fmt.Sprintf("by-hand=%d", d.IntN(100))
	case k < 72:
		s.verb, s.n = "delete a pod", d.IntN(5)
	case k < 75:
		s.verb, s.n = "delete a pod with force", d.IntN(5)
	default:
		s.who, s.n = "webhook", d.IntN(5)
		s.verb = pick(d, "annotate a pod", "annotate a pod", "relabel a pod", "relabel and label back", "disown a pod", "give a pod away",
			"put a finalizer on a pod", "put the tracking finalizer back", "take the tracking finalizer off")
		s.d = d.within(time.Millisecond, 10*time.Second)
	}
	d.add(s)
}

// end deletes the Job, and may create another one under its name.
func (d *drawer) end(on string, created time.Duration) {
	s := d.when(created)
	s.who, s.verb, s.on = "user", "delete", on
	s.text = pick(d, "Background", "Foreground", "Orphan", "Background")
	d.add(s)
	if d.chance(40) {
		s.verb, s.text, s.at = "create again", "", s.at+d.within(time.Microsecond, 10*time.Second)
		d.add(s)
	}
}

// foreign is what the manager of an unmanaged Job does to it.
func (d *drawer) foreign(on string, created time.Duration) {
	s := d.when(created)
	s.who, s.on = "other", on
	s.verb = pick(d, "create a pod of it", "finish it", "create a pod of it")
	d.add(s)
}

// others draws actions that concern no Job of the plan, or any one.
func (d *drawer) others() {
	if d.chance(10) {
		d.add(step{at: d.moment(), who: "other", verb: "create a loose pod", n: d.IntN(4)})
	}
	if d.chance(8) {
		at := d.moment()
		d.add(step{at: at, who: "user", verb: "limit pods", n: d.among(0, 3)})
		d.add(step{at: min(d.p.calm, at+d.within(time.Second, 3*time.Minute)), who: "user", verb: "limit no pods"})
	}
	if d.chance(6) && len(d.p.jobs) > 0 {
		policy := fmt.Sprintf("{job: {defaultTtlSecondsAfterFinished: %d}}", d.among(0, 60))
		d.add(step{at: d.moment(), who: "user", verb: "set the policy", on: pick(d, d.p.jobs...).on(), text: policy})
	}
}

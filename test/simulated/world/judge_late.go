package world

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

const (
	// prompt is how long an executor may take to create a pod or announce an end after
	// the last cause, such as the end of a retry delay or a deadline.
	prompt = 5 * time.Second
	// routine is the same limit for a status that only updates counts.
	routine = 8 * time.Second
	// besideBusy is how long such a status may wait if others write a lot.
	besideBusy = 14 * time.Second
	// recovers is how long a hindrance may have effects: a backoff after errors takes
	// at most a minute, and another executor takes over after two.
	recovers = 4 * time.Minute
	// begins is how long an executor takes to start.
	begins = 15 * time.Second
)

// A hindrance is a time in which something keeps executors from acting.
type hindrance struct{ from, until time.Time }

// hindered is called when something keeps executors from acting in time: from now on, for
// how long at most, and in which namespace (empty: in all).
func (j *judge) hindered(namespace string, now time.Time, lasts time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hinder(namespace, now, lasts)
	j.hinderedAt = now
}

// quotaHinders is hindered for a quota that refuses a pod. That keeps no executor from trying again (podTried).
func (j *judge) quotaHinders(namespace string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hinder(namespace, now, recovers)
}

func (j *judge) hinder(namespace string, now time.Time, lasts time.Duration) {
	until := now.Add(lasts)
	j.hindrances[namespace] = latest(j.hindrances[namespace], until)
	if n := len(j.whenHindered); n > 0 && !now.After(j.whenHindered[n-1].until) {
		j.whenHindered[n-1].until = latest(j.whenHindered[n-1].until, until)
		return
	}
	j.whenHindered = append(j.whenHindered, hindrance{now, until})
}

// guarded is called when a policy refuses to change an object. That hinders nothing else, with
// two exceptions: a run has to wait for a Job that it replaces, and the counts and the end of a
// Job for its pods.
func (j *judge) guarded(object types.NamespacedName, now time.Time) {
	j.mu.Lock()
	runs := false
	for _, r := range j.jobs {
		runs = runs || r.key == object && !r.gone && finished(r.job) == ""
	}
	for _, p := range j.pods {
		if p.key == object && p.job != nil {
			p.job.guardedUntil = now.Add(recovers)
		}
	}
	j.mu.Unlock()
	if runs {
		j.hindered(object.Namespace, now, recovers)
	}
}

// hinderedUntil is when the last hindrance between two times was over; zero if there was none.
func (j *judge) hinderedUntil(from, to time.Time) time.Time {
	for _, h := range slices.Backward(j.whenHindered) {
		if !h.from.After(to) {
			if h.until.Before(from) {
				break
			}
			return h.until
		}
	}
	return time.Time{}
}

// excused reports whether something kept an executor from acting in time.
func (j *judge) excused(w apiserver.Write, r *jobRecord) bool {
	until := latest(j.hindrances[""], j.hindrances[r.key.Namespace])
	return w.Time.Before(latest(until, j.leftAloneUntil(r))) || j.rivals
}

// touch handles a write of a pod by somebody else. It may be a cause for the Jobs that
// had the pod or, if nothing controls the pod, for the whole namespace.
func (j *judge) touch(w apiserver.Write, before *jobRecord, p *podRecord) {
	for _, r := range []*jobRecord{before, p.job} {
		if r != nil {
			r.touched = w.Time
		}
	}
	if before == nil || p.job != before {
		j.touched[w.Key.Namespace] = w.Time
	}
}

// judgeLate: an executor acts soon after a cause, not some time later. The check is
// made when the executor finally acts; judgeEnd finds Jobs for which it never acts.
func (j *judge) judgeLate(w apiserver.Write, r *jobRecord, within time.Duration, what string) {
	now := w.Time
	if j.excused(w, r) {
		return
	}
	last := latest(latest(latest(r.lastStimulus, r.lastOurs), latest(r.touched, j.touched[r.key.Namespace])), r.clockSeen)
	idle := now.Sub(last)
	if idle <= within || r.dueWithin(j, now, within) {
		return
	}
	j.breach("late", r.key, r.uid, "%s %s (%s %s %s) %s after the last thing that calls for it, and that must not take more than %s",
		w.By, what, w.Verb, w.Resource, w.Key.Name, idle, within)
}

// judgeLateRecord: a status accounts for a pod soon after its end, unless it may list
// only a few pods.
func (j *judge) judgeLateRecord(w apiserver.Write, r *jobRecord, p *podRecord) {
	due := latest(p.dueAt, p.strayAt)
	if j.limited || !p.due || p.revivals > 0 || p.flipped || r.awaits(p) || j.excused(w, r) {
		return
	}
	for _, at := range []time.Time{r.lastSpecChange(), p.claimedAt, r.replacedAt(p, j.allowance())} {
		due = latest(due, at)
	}
	if waited := w.Time.Sub(due); waited > j.allowance() {
		j.breach("late", r.key, r.uid, "%s recorded pod %s %s after its end, and that must not take more than %s", w.By, p.key.Name, waited, j.allowance())
	}
}

// lastSpecChange is when the Job was created or its spec last changed.
func (r *jobRecord) lastSpecChange() time.Time {
	if n := len(r.earlier); n > 0 {
		return r.earlier[n-1].until
	}
	return r.created
}

// dueWithin reports whether a deadline or a retry delay has passed a moment ago. If a
// clock was set, this is unknown; but routine statuses do not wait for a time of day.
func (r *jobRecord) dueWithin(j *judge, now time.Time, within time.Duration) bool {
	deadline, limited := r.deadline()
	start, mustStart := r.startDeadline()
	if j.askew() > 0 && within == prompt && (limited || mustStart || len(r.ends) > 0) {
		return true
	}
	justNow := func(at time.Time) bool { return !at.After(now) && now.Sub(at) <= within }
	if limited && justNow(deadline) || mustStart && justNow(start) {
		return true
	}
	if slices.ContainsFunc(j.lateStarts(r), justNow) {
		return true
	}
	for _, p := range r.live {
		if at, ok := r.overdueAt(p.pod); ok && justNow(at) {
			return true
		}
	}
	growing := j.growsUntil(r)
	for _, p := range j.pods { // A failure delays others even if the pod need not be counted.
		if p.job != r && !r.had(p) {
			continue
		}
		for n := range growing {
			least, most := j.delays(r, n+1)
			for _, end := range p.ended() {
				if justNow(end.Add(least)) || justNow(end.Truncate(time.Second).Add(least)) {
					return true
				}
				if first := end.Truncate(time.Second).Add(least); most > least && !first.After(now) && now.Sub(end.Add(most)) <= within {
					return true
				}
			}
		}
	}
	return false
}

// ended are the times of a pod's end. The executor may know any of them.
func (p *podRecord) ended() []time.Time {
	ends := []time.Time{p.finished, p.dueAt, p.endedAt, p.goneAt}
	if !p.endedAt.IsZero() {
		ends = append(ends, finishTime(p.pod))
	}
	return ends
}

// allowance is how long a routine status may wait.
func (j *judge) allowance() time.Duration {
	if j.busy {
		return besideBusy
	}
	return routine
}

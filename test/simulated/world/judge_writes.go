package world

import (
	"time"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// The number of writes by executors is bounded by what happened (I11). Each write by
// somebody else allows executors some writes. So does each change of a spec: some for each
// pod that may be created or deleted because of it.
const (
	writesAtAll      = 40
	writesPerWrite   = 6
	writesPerChange  = 8
	writesPerPod     = 5
	writesPerFault   = 6
	podWritesAtAll   = 8
	podWritesPerGift = 2
)

// comesToRest is how long after the last event a Job may be written without a new
// cause: the longest retry delay, the longest backoff after failed reconciles, and
// slack.
func (j *judge) comesToRest() time.Duration { return j.longestDelay + 5*time.Minute }

// disturbed handles a fault: a lost answer, or a killed process. The writes that the fault
// makes necessary are not a hot loop.
func (j *judge) disturbed(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.troubledAt = now
	for _, r := range j.jobs {
		if !r.gone {
			r.stimuli += writesPerFault
		}
	}
}

// countWrite counts the write of a pod, for the pod and for its Job.
func (j *judge) countWrite(w apiserver.Write, ours bool, p *podRecord) {
	if !ours {
		p.foreign++
		if p.job != nil {
			p.job.stimulated(w, writesPerWrite)
		}
		return
	}
	p.ourWrites++
	most := podWritesAtAll + podWritesPerGift*p.foreign + int(w.Time.Sub(p.created)/time.Minute)
	if p.ourWrites > most {
		j.breach("writes", p.key, p.uid, "executors wrote a pod %d times in %s, and %d writes by others call for %d at most", p.ourWrites, w.Time.Sub(p.created), p.foreign, most)
	}
	if p.job != nil {
		j.countOurs(w, p.job)
	}
}

// countJobWrite counts the write of a Job. A change of the spec, or the deletion of the
// Job, may concern all its pods.
func (j *judge) countJobWrite(w apiserver.Write, ours bool, r *jobRecord, specChanged bool) {
	if specChanged || w.Verb == "delete" || r.gone {
		r.stimulated(w, writesPerChange+writesPerPod*(r.parallelism()+len(r.live)))
		return
	}
	if !ours {
		r.stimulated(w, writesPerWrite)
		return
	}
	j.countOurs(w, r)
}

func (r *jobRecord) stimulated(w apiserver.Write, pays int) {
	r.stimuli += pays
	r.lastStimulus = w.Time
}

func (r *jobRecord) parallelism() int {
	n := valueOr(r.job.Spec.Parallelism, 1)
	if r.job.Spec.Completions != nil {
		n = min(n, *r.job.Spec.Completions)
	}
	return int(n)
}

func (j *judge) countOurs(w apiserver.Write, r *jobRecord) {
	r.ourWrites++
	r.lastOurs = w.Time
	most := writesAtAll + r.stimuli + writesPerPod*r.parallelism() + int(w.Time.Sub(r.created)/(10*time.Minute))
	if r.ourWrites > most {
		j.breach("writes", r.key, r.uid, "executors wrote the Job and its pods %d times in %s, and what happened calls for %d at most", r.ourWrites, w.Time.Sub(r.created), most)
	}
	j.judgeRest(w, r)
}

// judgeRest: once faults have ended, executors do not write a Job to which nothing
// happens.
func (j *judge) judgeRest(w apiserver.Write, r *jobRecord) {
	if j.calmSince.IsZero() || w.Verb == "delete" {
		return
	}
	since := latest(latest(j.calmSince, r.lastStimulus), j.leftAloneUntil(r))
	if at, ok := r.deadline(); ok && !at.After(w.Time) {
		since = latest(since, at)
	}
	if at, ok := r.startDeadline(); ok && !at.After(w.Time) {
		since = latest(since, at)
	}
	for _, at := range j.lateStarts(r) {
		if !at.After(w.Time) {
			since = latest(since, at)
		}
	}
	if quiet := w.Time.Sub(since); quiet > j.comesToRest() {
		j.breach("rest", r.key, r.uid, "%s wrote (%s %s %s) a Job to which nothing had happened for %s, and it must be at rest after %s",
			w.By, w.Verb, w.Resource, w.Key.Name, quiet, j.comesToRest())
	}
}

// deadline is when the Job's deadline passes; ok is false if none is running.
func (r *jobRecord) deadline() (at time.Time, ok bool) {
	limit, start := r.job.Spec.ActiveDeadlineSeconds, r.job.Status.StartTime
	if limit == nil || start == nil || suspended(r.job) || *limit > int64(100*365*24*time.Hour/time.Second) {
		return time.Time{}, false
	}
	return start.Add(time.Duration(*limit) * time.Second), true
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

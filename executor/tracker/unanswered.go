package tracker

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// StatusWrite is a status write and what to announce about it in metrics, log and events.
// It is announced exactly once, when the write is known to have taken effect. If no answer
// came, a later version of the Job shows that.
type StatusWrite struct {
	Job    *batchv1.Job // The version that the write replaces.
	Status batchv1.JobStatus
	// LastValid is the annotation wire.LastValidPolicy that the Job has with the status; empty: it has none.
	LastValid string
	Events    []*jobpolicyv1.JobEvent
	Actions   []*jobpolicyv1.PodFailureActionCount
	// End is how the Job failed, if this write is the first one that says that it did.
	End *jobpolicyv1.JobEnd
}

// Result is the Job with the new status.
func (w *StatusWrite) Result() *batchv1.Job {
	job := w.Job.DeepCopy()
	job.Status = w.Status
	wire.WithLastValid(&job.ObjectMeta, w.LastValid)
	job.ManagedFields = nil // What is kept of them must not replace what the API server has.
	return job
}

// tookEffect reports whether a later version of the Job contains this write, although other
// clients may have changed the status since. If the write added conditions of the engine, it
// took effect if the Job has them, with their times: other clients keep those. If it added
// none, it took effect if it changed the accounting of pods, the Job has exactly that
// accounting, and no later write has added a condition of the engine.
func (w *StatusWrite) tookEffect(job *batchv1.Job) bool {
	set := 0
	for i := range w.Status.Conditions {
		c := w.Status.Conditions[i]
		if !wire.DecidedByEngine(c.Type) || hasCondition(&w.Job.Status, c) {
			continue
		}
		if !hasCondition(&job.Status, c) {
			return false
		}
		set++
	}
	return set > 0 || (!sameLedger(&w.Status, &w.Job.Status) && sameLedger(&w.Status, &job.Status) && !decidesMore(&job.Status, &w.Status))
}

// decidesMore reports whether a status has a condition of the engine that another one lacks.
func decidesMore(status, other *batchv1.JobStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c batchv1.JobCondition) bool {
		return wire.DecidedByEngine(c.Type) && !hasCondition(other, c)
	})
}

func hasCondition(status *batchv1.JobStatus, wanted batchv1.JobCondition) bool {
	return slices.ContainsFunc(status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == wanted.Type && c.Status == wanted.Status && c.Reason == wanted.Reason && c.Message == wanted.Message &&
			c.LastTransitionTime.Equal(&wanted.LastTransitionTime)
	})
}

// equals reports whether another write would have the same effect. Transition times are
// compared: two tries may differ only in them, and they then tell which try took effect.
func (w *StatusWrite) equals(other *StatusWrite) bool {
	return w.Job.ResourceVersion == other.Job.ResourceVersion && wire.SameStatus(&w.Status, &other.Status)
}

// maxUnanswered bounds how many writes of a Job are kept. Each has a whole status.
const maxUnanswered = 8

// unanswered are the status writes of a Job that got no answer.
type unanswered struct {
	writes []*StatusWrite
	// announced is the version that the last announced write replaced.
	announced uint64
}

// Unanswered records a write whose outcome is unknown. It replaces an equal one. If there are more than
// maxUnanswered, it drops the oldest, which is then never announced. Several later reads of the
// Job showed no effect of that write, so it is very unlikely to take effect now.
func (j *Job) Unanswered(w *StatusWrite) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unanswered.writes = append(slices.DeleteFunc(j.unanswered.writes, w.equals), w)
	if n := len(j.unanswered.writes); n > maxUnanswered {
		j.unanswered.writes = slices.Delete(j.unanswered.writes, 0, n-maxUnanswered)
	}
}

// Answered records that a write has replaced a version. Other writes that would replace
// the same version never take effect, so it removes them.
func (j *Job) Answered(w *StatusWrite) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unanswered.writes = slices.DeleteFunc(j.unanswered.writes, func(other *StatusWrite) bool {
		return other.Job.ResourceVersion == w.Job.ResourceVersion
	})
}

// Resolve returns the write that led to this version of the Job, if there is one and it is
// not announced yet. It removes all writes that would replace an older version: at most
// one of them took effect, and none can take effect any more.
func (j *Job) Resolve(job *batchv1.Job) *StatusWrite {
	j.mu.Lock()
	defer j.mu.Unlock()
	var effective *StatusWrite
	j.unanswered.writes = slices.DeleteFunc(j.unanswered.writes, func(w *StatusWrite) bool {
		if wire.ResourceVersion(job.ResourceVersion) <= wire.ResourceVersion(w.Job.ResourceVersion) {
			return false
		}
		if w.tookEffect(job) && j.unanswered.announce(w) {
			effective = w
		}
		return true
	})
	return effective
}

// Announce reports whether the write has not been announced yet, and records that it is.
func (j *Job) Announce(w *StatusWrite) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unanswered.announce(w)
}

// announce is Announce. A version of the Job is replaced only once, so
// it identifies the write.
func (u *unanswered) announce(w *StatusWrite) bool {
	base := wire.ResourceVersion(w.Job.ResourceVersion)
	if base != 0 && base == u.announced {
		return false
	}
	u.announced = base
	return true
}

package executor

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/tracker"
)

// An Observation is a Job with the last decision on it. Decision is nil if there is none,
// as for a Job that had finished when the executor started. Job and Decision are the
// executor's own and must not be changed. If all four fields equal those of an earlier
// Observation, nothing has changed.
type Observation struct {
	Job      *batchv1.Job
	Decision *state.Decision
	// Refusal says why pods could not be created. Zero: there is no such failure.
	Refusal state.Refusal
	// Hindered sums up the pods that cannot start.
	Hindered tracker.Hindered
}

// EachJob calls f with each managed Job that exists, in no order.
func (e *Executor) EachJob(f func(Observation)) {
	for _, s := range e.jobs.All() {
		if o, ok := e.observation(s); ok {
			f(o)
		}
	}
}

// Job returns the managed Job with this UID, and what is known of its pods. More pods than
// mostPods are only counted.
func (e *Executor) Job(uid types.UID, mostPods int) (o Observation, pods tracker.Census, ok bool) {
	s, known := e.jobs.Existing(uid)
	if !known {
		return Observation{}, tracker.Census{}, false
	}
	if o, ok = e.observation(s); ok {
		pods = s.Tracker.Census(mostPods)
	}
	return o, pods, ok
}

func (e *Executor) observation(s *state.Job) (o Observation, ok bool) {
	refusal := cmp.Or(e.decider.cfg.standstillRefusal(s), s.Backoffs.Refusal())
	o = Observation{s.Version.Current(), s.Decisions.Last(), refusal, s.Tracker.Hindered()}
	return o, o.Job != nil && e.watcher.scope.Manages(o.Job)
}

package executor

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An Observation is a Job with the last decision on it. Decision is nil if there is none,
// as for a Job that had finished when the executor started. Job and Decision are the
// executor's own and must not be changed. If all fields equal those of an earlier
// Observation, nothing has changed.
type Observation struct {
	Job      *batchv1.Job
	Decision *tracker.Decision
	// Rejected is the ErrorReason for which the engine makes no decision about the Job, by its name in
	// errors (jobpolicyv1grpc.ReasonName); empty if it does.
	Rejected string
	// Refusals are the writes that the API server refuses, if people have been told of them.
	Refusals []writes.Refusal
	// Standstill says why no pods are created, if too many were created that nobody saw.
	Standstill Standstill
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
		pods = s.Census(mostPods)
	}
	return o, pods, ok
}

// Options are the options that a Job has.
type Options struct {
	// From says for people where they are (wire.PolicyOrigin); empty: the Job has none.
	From string
	// Job are those by which the executor goes. Nil: the policy has none for Jobs.
	Job *jobpolicyv1.JobOptions
	// Problems say why the options cannot be read. Then Job are the last ones that could be; nil: there are none.
	Problems []string
}

// Options are those of the managed Job with this UID.
func (e *Executor) Options(uid types.UID) Options {
	s, known := e.jobs.Existing(uid)
	if !known || s.Current() == nil {
		return Options{}
	}
	job := s.Current()
	read, problems := e.decider.policies.OfJob(job)
	if len(problems) > 0 {
		read = s.Options(nil, problems)
	}
	return Options{e.decider.policies.Origin(job.Namespace, job.Annotations), read, problems}
}

func (e *Executor) observation(s *tracker.Job) (o Observation, ok bool) {
	s.PruneRefusals()
	o = Observation{s.Current(), s.LastDecision(), s.Rejection(), s.Refusals.Standing(), e.decider.cfg.standstillOf(s), s.Hindered()}
	return o, o.Job != nil && e.watcher.scope.Manages(o.Job)
}

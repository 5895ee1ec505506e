package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An Observation is a managed CronJob with the explanation of the last decision on it.
// Explanation is nil if there is none yet. Both belong to the controller and must not be
// changed.
type Observation struct {
	CronJob     *batchv1.CronJob
	Explanation *jobpolicyv1.CronJobExplanation
	// Refusals are the writes that the API server refuses, if people have been told of them.
	Refusals []writes.Refusal
	// Suspended: no run is started by schedule.
	Suspended bool
	// Zone is that of a schedule that names none. Empty: UTC.
	Zone string
	// OptionsFrom says for people where the options are (wire.PolicyOrigin); empty: there are none. Options are the last ones
	// that could be read; nil: none could be yet. OptionsUnread: those of now cannot be.
	OptionsFrom   string
	Options       *jobpolicyv1.CronJobOptions
	OptionsUnread bool
}

// EachCronJob calls f with each managed CronJob, in no order.
func (c *Controller) EachCronJob(f func(Observation)) {
	c.mu.Lock()
	states := make([]*cronState, 0, len(c.crons))
	for _, s := range c.crons {
		states = append(states, s)
	}
	c.mu.Unlock()
	for _, s := range states {
		s.mu.Lock()
		cron, last, options, unread := s.cron, s.last, s.options, s.unread
		s.mu.Unlock()
		if cron != nil && c.scope.Runs(cron) {
			f(Observation{
				CronJob: cron, Explanation: last, Refusals: s.refusals.Standing(), Suspended: c.scope.Suspended(cron), Zone: c.cfg.TimeZone,
				OptionsFrom: c.cfg.Policies.Origin(cron.Namespace, cron.Annotations), Options: options, OptionsUnread: unread,
			})
		}
	}
}

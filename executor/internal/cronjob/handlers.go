package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
)

// jobSeen enqueues the CronJob that controls the Job, and the one that controlled it before.
func (c *Controller) jobSeen(before, job *batchv1.Job) {
	if before != nil && controllingUID(before) != controllingUID(job) {
		c.enqueueOwner(before)
	}
	if s, ok := c.owner(job); ok && before == nil {
		s.runs.seen(job)
	}
	if before == nil || mattersToOwner(before, job) {
		c.enqueueOwner(job)
	}
}

// jobGone enqueues the CronJob that controlled the Job.
func (c *Controller) jobGone(job *batchv1.Job) {
	if s, ok := c.owner(job); ok {
		s.madeRoom()
	}
	c.enqueueOwner(job)
}

// enqueueOwner enqueues the CronJob that controls the Job, if there is one.
func (c *Controller) enqueueOwner(job *batchv1.Job) {
	if s, ok := c.owner(job); ok {
		c.queue.Enqueue(s.cronKey, causeJob, controller.PriorityNormal)
	}
}

// owner returns the state of the CronJob that controls the Job. A CronJob that is not known yet
// is enqueued when it is seen.
func (c *Controller) owner(job *batchv1.Job) (*cronState, bool) {
	s, ok := c.known(controllingUID(job))
	return s, ok && s.namespace == job.Namespace
}

// mattersToOwner reports whether a decision on the Job's CronJob may depend on the
// change. The counters of a running Job do not matter.
func mattersToOwner(before, job *batchv1.Job) bool {
	return controllingUID(before) != controllingUID(job) || before.UID != job.UID ||
		wire.JobOutcome(before) != wire.JobOutcome(job) || (before.DeletionTimestamp == nil) != (job.DeletionTimestamp == nil) ||
		!before.Status.StartTime.Equal(job.Status.StartTime)
}

func (c *Controller) cronSeen(old, cron *batchv1.CronJob) {
	if old != nil && old.UID != cron.UID {
		c.cronGone(old)
	}
	c.mu.Lock()
	s, ok := c.crons[cron.UID]
	if !ok {
		s = newCronState(cron)
		c.crons[cron.UID] = s
	}
	c.mu.Unlock()
	if s.observe(cron) {
		c.queue.Enqueue(s.cronKey, causeCronJob, controller.PriorityNormal)
	}
}

// policyChanged enqueues a CronJob whose options may have changed.
func (c *Controller) policyChanged(cron *batchv1.CronJob) {
	if s, ok := c.known(cron.UID); ok {
		c.queue.Enqueue(s.cronKey, causePolicy, controller.PriorityNormal)
	}
}

func (c *Controller) cronGone(cron *batchv1.CronJob) {
	s, ok := c.known(cron.UID)
	if !ok {
		return
	}
	c.joinGroup(s, c.groupOf(s).GetName()) // Others may wait for a decision on it that never comes.
	c.forget(s)
	c.leaveGroup(s)
}

func (c *Controller) forget(s *cronState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.crons, s.uid)
	c.queue.Forget(s.cronKey)
	c.comparer.Gone(s.uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cron = nil
}

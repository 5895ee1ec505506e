package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/wire"
)

func (c *Controller) cronHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.cronSeen(nil, obj.(*batchv1.CronJob)) },
		UpdateFunc: func(old, obj any) {
			c.cronSeen(old.(*batchv1.CronJob), obj.(*batchv1.CronJob))
		},
		DeleteFunc: func(obj any) {
			if cron, ok := controller.Deleted[*batchv1.CronJob](obj); ok {
				c.cronGone(cron.UID)
			}
		},
	}
}

func (c *Controller) jobHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueueOwner(obj.(*batchv1.Job)) },
		UpdateFunc: func(old, obj any) {
			before, job := old.(*batchv1.Job), obj.(*batchv1.Job)
			if controllingUID(before) != controllingUID(job) {
				c.enqueueOwner(before)
			}
			if mattersToOwner(before, job) {
				c.enqueueOwner(job)
			}
		},
		DeleteFunc: func(obj any) {
			if job, ok := controller.Deleted[*batchv1.Job](obj); ok {
				c.enqueueOwner(job)
			}
		},
	}
}

// enqueueOwner enqueues the CronJob that controls the Job, if there is one.
func (c *Controller) enqueueOwner(job *batchv1.Job) {
	if uid := controllingUID(job); uid != "" {
		c.queue.Enqueue(uid, causeJob, controller.PriorityNormal)
	}
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
		c.cronGone(old.UID)
	}
	c.mu.Lock()
	s, ok := c.crons[cron.UID]
	if !ok {
		s = &cronState{
			uid: cron.UID, namespace: cron.Namespace, name: cron.Name,
			made: map[types.UID]*madeJob{}, unmade: map[types.UID]bool{},
		}
		c.crons[cron.UID] = s
	}
	c.mu.Unlock()
	if s.observe(cron) {
		c.queue.Enqueue(cron.UID, causeCronJob, controller.PriorityNormal)
	}
}

func (c *Controller) cronGone(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.crons[uid]
	if !ok {
		return
	}
	delete(c.crons, uid)
	c.queue.Forget(uid)
	if c.looker != nil {
		c.looker.Gone(uid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cron = nil
}

package executor

import (
	"slices"
	"time"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// requeueIfNoEvent is when a Job is reconciled again after a decision was applied, if no event
// comes.
const requeueIfNoEvent = 10 * time.Second

// sooner returns the result with a requeue after at most this delay. A delay of 0 changes
// nothing.
func sooner(result controller.Result, delay time.Duration) controller.Result {
	if delay > 0 && (result.RequeueAfter == 0 || delay < result.RequeueAfter) {
		result.RequeueAfter = delay
	}
	return result
}

// soonest returns the result with a requeue at this time at the latest, or at once if it is over.
func soonest(result controller.Result, at time.Time) controller.Result {
	return sooner(result, max(time.Until(at), 1))
}

// requeueAfter is how long until the decision's requeue time; 0 if it has none. It is measured
// from the request's now, and in elapsed time, so that setting the clock does not change it. It
// is at least Config.SyncBatchPeriod (invariant I11).
func (c *Config) requeueAfter(snap snapshot, d *jobpolicyv1.DecideJobResponse) time.Duration {
	if d.GetRequeueTime() == nil {
		return 0
	}
	ahead := d.GetRequeueTime().AsTime().Sub(snap.req.GetNow().AsTime())
	return max(ahead-time.Since(snap.made), c.SyncBatchPeriod)
}

// regrowth is how long until the next request about the Job may list more finished pods,
// after the engine has refused a longer list. 0: the list is complete, or was never refused.
func (c *Config) regrowth(s *tracker.Job, snap snapshot) time.Duration {
	if snap.req.GetUnlistedPods() == nil {
		return 0
	}
	return s.RowsRegrowth(len(snap.req.GetUnaccountedPods()), c.rowLimit(snap.job))
}

// followUp says when to reconcile again after a decision was carried out in full. requeue
// is Config.requeueAfter.
func (c *Config) followUp(s *tracker.Job, d *jobpolicyv1.DecideJobResponse, requeue time.Duration) controller.Result {
	releases := slices.ContainsFunc(d.GetRelease(), func(b []byte) bool {
		uid, _ := wire.UIDString(b) // The answer was checked, so the UID is valid.
		return s.MayRelease(uid)
	})
	changed := d.GetCreate() != nil || len(d.GetDelete())+len(d.GetEnd())+len(d.GetDeleteFinished()) > 0 || d.GetStatus() != nil || releases
	result := controller.Result{RequeueAfter: requeueIfNoEvent}
	switch answer.FollowUp(d, changed) {
	case jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE:
		return controller.Result{Requeue: true}
	case jobpolicyv1.FollowUp_FOLLOW_UP_WHEN_CONFIRMED:
		result.RequeueAfter = c.StatusPeriod
	}
	return sooner(result, requeue)
}

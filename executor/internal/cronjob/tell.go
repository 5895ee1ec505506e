package cronjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventWaitingForGroup is the reason of the event on a CronJob whose run waits for room in a group of the cluster. Its user may have
// no right to see the CronJobs of other namespaces, for which it waits; the events in his own he may read.
const eventWaitingForGroup = "WaitingForGroup"

const (
	// tellPeriod is how often that event is repeated: the API server keeps events for an hour.
	tellPeriod = 30 * time.Minute
	// tellSoon is when it is told if the CronJobs of the group had to be looked at first: the run may not wait for anybody.
	tellSoon = 10 * time.Second
	// tellAfter is how long a run waits before it is told for the first time: a shorter wait is no news.
	tellAfter = 5 * time.Second
)

// A toldWait is a wait in a group of the cluster of which an event tells.
type toldWait struct{ since, at time.Time }

// tellWait tells that a run waits for room in a group of the cluster, once for each place in the line and period. How long it has
// waited follows from its claim, so a restart does not put it off. It returns after how long to look again; 0: nothing waits.
func (c *Controller) tellWait(s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) (again time.Duration) {
	claim := d.GetGroupClaim()
	waited := min(c.cfg.Now().Sub(claim.GetFrom().AsTime()), c.cfg.Now().Sub(claim.GetSince().AsTime()))
	waits := d.GetCreate() == nil && claim != nil && waited >= 0 && !snap.hasRoom(d)
	switch {
	case !snap.group.ofCluster() || !waits:
		return 0
	case snap.req.GetGroup().GetUndecided() > 0:
		return tellSoon
	case waited < tellAfter:
		return tellAfter - waited
	}
	since, now := claim.GetSince().AsTime(), time.Now()
	s.mu.Lock()
	left := tellPeriod - now.Sub(s.toldWait.at)
	if known := s.toldWait.since.Equal(since); known && left > 0 {
		s.mu.Unlock()
		return left
	}
	s.toldWait = toldWait{since, now}
	s.mu.Unlock()
	c.base.Recorder.Event(snap.cron, corev1.EventTypeNormal, eventWaitingForGroup, groupWait(d, snap.group))
	return tellPeriod
}

// groupWait says in words for what a run waits that finds no room in its group.
func groupWait(d *jobpolicyv1.DecideCronJobResponse, group groupKey) string {
	for _, wait := range d.GetExplanation().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_RUN_GROUP {
			return wait.GetDetail()
		}
	}
	return fmt.Sprintf("group %s of the cluster has no room for its run", group.name)
}

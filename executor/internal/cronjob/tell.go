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

// A clusterWait is what is known of the wait of a run in a group of the cluster.
type clusterWait struct {
	// seen is when the run was first seen to wait; zero: none waits.
	seen time.Time
	// told is when an event told of a wait last, and since the place in the line that it was about.
	told, since time.Time
}

// look is called when a run waits with a place in the line. It reports whether to tell that now, and after how long to look again.
func (w *clusterWait) look(since, now time.Time) (tell bool, again time.Duration) {
	if w.seen.IsZero() {
		w.seen = now
	}
	if left := tellAfter - now.Sub(w.seen); left > 0 {
		return false, left
	}
	if left := tellPeriod - now.Sub(w.told); left > 0 && w.since.Equal(since) {
		return false, left
	}
	w.told, w.since = now, since
	return true, tellPeriod
}

// tellWait tells that a run waits for room in a group of the cluster, once for each place in the line and period. It counts the
// time since it saw the wait, not since the run was due: until then something else may have kept the run, such as an earlier run
// (concurrencyPolicy Forbid) or a suspension. It returns after how long to look again; 0: nothing waits.
func (c *Controller) tellWait(s *cronState, snap snapshot, d *jobpolicyv1.DecideCronJobResponse) (again time.Duration) {
	claim, now := d.GetGroupClaim(), c.cfg.Now()
	due := claim != nil && !claim.GetFrom().AsTime().After(now) && !claim.GetSince().AsTime().After(now)
	s.mu.Lock()
	if !due || !snap.group.ofCluster() || d.GetCreate() != nil || snap.hasRoom(d) {
		s.wait.seen = time.Time{}
		s.mu.Unlock()
		return 0
	}
	if snap.req.GetGroup().GetUndecided() > 0 {
		s.mu.Unlock()
		return tellSoon
	}
	tell, again := s.wait.look(claim.GetSince().AsTime(), time.Now())
	s.mu.Unlock()
	if tell {
		c.base.Recorder.Event(snap.cron, corev1.EventTypeNormal, eventWaitingForGroup, groupWait(d, snap.group))
	}
	return again
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

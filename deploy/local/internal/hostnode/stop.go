package hostnode

import (
	"math"
	"syscall"
	"time"
)

// cause says why a pod is wound down.
type cause string

const (
	// causeFinished: the main containers are done; sidecars may be left.
	causeFinished cause = "finished"
	// causeInitFailed: an init container failed for good; sidecars may be left.
	causeInitFailed cause = "init container failed"
	// causeDeleted: the object is marked for deletion, or gone.
	causeDeleted cause = "deleted"
	// causeDeadline: activeDeadlineSeconds are over.
	causeDeadline cause = "deadline exceeded"
	// causeOverruled: somebody else has written a terminal phase.
	causeOverruled cause = "phase written by another"
)

// deadlineVerdict has the kubelet's words for a pod that outlived its activeDeadlineSeconds.
var deadlineVerdict = &verdict{"DeadlineExceeded", "Pod was active on the node longer than the specified deadline"}

// stopping is the winding down of a pod.
type stopping struct {
	cause cause
	// killAt is when patience ends.
	killAt time.Time
}

// stopFor starts winding down, or hurries it if patience would end sooner: a grace period can only get shorter.
func (w *podWorker) stopFor(why cause, killAt time.Time) {
	if w.stop == nil {
		w.stop = &stopping{why, killAt}
		w.logger.Debug("pod is wound down", "namespace", w.pod.Namespace, "pod", w.pod.Name, "cause", why)
		return
	}
	if killAt.Before(w.stop.killAt) {
		w.stop.killAt = killAt
	}
}

// noticeStop looks for reasons outside the containers to wind the pod down.
func (w *podWorker) noticeStop(now time.Time) {
	switch {
	case w.gone, w.pod.DeletionTimestamp != nil:
		w.stopFor(causeDeleted, w.deadlineOf(now))
	case terminal(w.pod.Status.Phase):
		w.stopFor(causeOverruled, w.deadlineOf(now))
		w.adoptPhase()
	case w.stop == nil && w.pastDeadline(now):
		w.verdict = deadlineVerdict
		w.stopFor(causeDeadline, w.deadlineOf(now))
		w.events.note(w.pod, "", w.verdict.reason, w.verdict.message)
	}
}

// adoptPhase takes over a terminal phase from the API, with its reason, as what cannot change any more.
func (w *podWorker) adoptPhase() {
	if terminal(w.status.Phase) {
		return
	}
	adopted := *w.status
	adopted.Phase, adopted.Reason, adopted.Message = w.pod.Status.Phase, w.pod.Status.Reason, w.pod.Status.Message
	w.status = &adopted
}

// deadlineOf is when a pod that is to stop from now on is killed: the grace period of its deletion, else its own.
func (w *podWorker) deadlineOf(now time.Time) time.Time {
	for _, grace := range []*int64{w.pod.DeletionGracePeriodSeconds, w.pod.Spec.TerminationGracePeriodSeconds} {
		if grace != nil {
			return now.Add(durationOf(*grace))
		}
	}
	return now
}

// durationOf is a number of seconds, at most the 292 years that a Duration holds: the API allows more as a grace period.
func durationOf(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second
}

// deadline is when the pod will have been active for too long; zero if it may be active for ever.
func (w *podWorker) deadline() time.Time {
	limit := w.pod.Spec.ActiveDeadlineSeconds
	if limit == nil {
		return time.Time{}
	}
	return w.since.Add(durationOf(*limit))
}

func (w *podWorker) pastDeadline(now time.Time) bool {
	at := w.deadline()
	return !at.IsZero() && !now.Before(at)
}

// windDown asks the processes to end, and kills them when patience is over. It sets w.over when none is left, and
// returns when to look again.
func (w *podWorker) windDown(now time.Time) time.Time {
	alive := w.alive()
	if len(alive) == 0 {
		w.finish()
		return time.Time{}
	}
	if !now.Before(w.stop.killAt) {
		for _, c := range alive {
			c.current.process.signal(syscall.SIGKILL)
		}
		return time.Time{}
	}
	for _, c := range nextToStop(alive) {
		if c.current.asked {
			continue
		}
		c.current.asked = true
		w.events.note(w.pod, c.spec.Name, "Killing", "Stopping container "+c.spec.Name)
		c.current.process.signal(syscall.SIGTERM)
	}
	return w.stop.killAt
}

// nextToStop picks the containers that are asked to end: all but the sidecars; then those, one by one from the last.
func nextToStop(alive []*container) []*container {
	var others []*container
	for _, c := range alive {
		if c.role != roleSidecar {
			others = append(others, c)
		}
	}
	if len(others) > 0 {
		return others
	}
	return alive[len(alive)-1:]
}

// finish ends the pod. A container that waited for its next start will not get one: it shows how it ended.
func (w *podWorker) finish() {
	w.over = true
	for _, c := range w.containers {
		if c.ended() {
			c.waiting = nil
		}
	}
}

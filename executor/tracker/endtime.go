package tracker

import (
	"time"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wallclock"
)

// finishedTime is UnaccountedPod.finished_time. It is never before the pod was created: a
// node whose clock is slow must not make the retry delay seem over.
func finishedTime(pod *podcache.Pod) time.Time {
	if at := reportedEnd(pod); at.After(pod.Created) {
		return at
	}
	if pod.Created.IsZero() {
		return time.Unix(0, 0)
	}
	return pod.Created
}

// notAfter returns the time at which a pod ended, but no later than when this process saw it
// (seen, an elapsed time, which is converted to wall time; now is the current wall time). A
// clock that was set back, or a node whose clock is fast, must not make a retry delay longer.
// If now or seen is zero, it returns ended.
func notAfter(ended, seen, now time.Time) time.Time {
	if now.IsZero() || seen.IsZero() {
		return ended
	}
	if by := wallclock.Of(seen, now); by.Before(ended) {
		return by
	}
	return ended
}

// reportedEnd is when a pod ended as far as the pod says; zero if it says nothing.
func reportedEnd(pod *podcache.Pod) time.Time {
	switch {
	case !pod.ContainersEnded.IsZero():
		return pod.ContainersEnded
	case pod.Unready && !pod.ReadyChanged.IsZero():
		return pod.ReadyChanged
	case pod.Deleting:
		return pod.DeletionAsked
	default:
		return time.Time{}
	}
}

package podcache

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// limits are for how long a pod may be active, and how long it may take to end. Most pods of a Job have
// the same.
type limits struct {
	// deadline is spec.activeDeadlineSeconds; noDeadline: none.
	deadline int64
	// grace is spec.terminationGracePeriodSeconds, at least 0.
	grace int64
}

const noDeadline = -1

// Started is when a node took the pod (status.startTime), in seconds; zero: none has.
func (p *Pod) Started() time.Time {
	if !p.taken {
		return time.Time{}
	}
	return p.Created.Add(time.Duration(p.takenAfter) * time.Second)
}

// ActiveDeadline is for how many seconds since Started the pod may be active (spec.activeDeadlineSeconds);
// limited is false if it may be for ever.
func (p *Pod) ActiveDeadline() (seconds int64, limited bool) {
	seconds = p.phase.Value().limits.deadline
	return seconds, seconds != noDeadline
}

// GracePeriod is how many seconds the pod gets to end, at least 0 (spec.terminationGracePeriodSeconds).
func (p *Pod) GracePeriod() int64 { return p.phase.Value().limits.grace }

func (p *Pod) readStart(pod *corev1.Pod) {
	if start := pod.Status.StartTime; !start.IsZero() {
		after := start.Unix() - pod.CreationTimestamp.Unix()
		p.taken, p.takenAfter = true, int32(max(math.MinInt32, min(after, math.MaxInt32)))
	}
}

// limitsOf passes over values below 0, which no pod can have that the API server has accepted.
func limitsOf(pod *corev1.Pod) limits {
	return limits{max(noDeadline, ptr.Deref(pod.Spec.ActiveDeadlineSeconds, noDeadline)), max(0, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))}
}

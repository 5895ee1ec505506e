package hostnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restore fills the records of a pod that an earlier life of the node has worked on, from the status it wrote. A
// container that ran then does not run any more: its process died with the node.
func restore(containers []*container, status *corev1.PodStatus, now time.Time) {
	known := make(map[string]*corev1.ContainerStatus)
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			known[list[i].Name] = &list[i]
		}
	}
	for _, c := range containers {
		if s := known[c.spec.Name]; s != nil {
			c.restore(s, now)
		}
	}
}

func (c *container) restore(s *corev1.ContainerStatus, now time.Time) {
	c.restarts = s.RestartCount
	last := restoredRun(s.LastTerminationState.Terminated, s.RestartCount-1)
	switch {
	case s.State.Terminated != nil:
		c.current, c.previous = restoredRun(s.State.Terminated, s.RestartCount), last
	case s.State.Running != nil:
		c.current, c.previous = lostRun(s, now), last
	case s.LastTerminationState.Terminated != nil:
		// Waiting to be restarted: the restart is not counted yet.
		c.current = restoredRun(s.LastTerminationState.Terminated, s.RestartCount)
	}
}

func restoredRun(t *corev1.ContainerStateTerminated, attempt int32) *run {
	if t == nil {
		return nil
	}
	return &run{
		id:      t.ContainerID,
		attempt: attempt,
		started: t.StartedAt.Time,
		end: &runEnd{
			ending:  ending{code: t.ExitCode, signal: t.Signal, at: t.FinishedAt.Time},
			reason:  t.Reason,
			message: t.Message,
		},
	}
}

func lostRun(s *corev1.ContainerStatus, now time.Time) *run {
	return &run{
		id:      s.ContainerID,
		attempt: s.RestartCount,
		started: s.State.Running.StartedAt.Time,
		end: &runEnd{
			ending:  ending{code: codeStatusUnknown, at: now},
			reason:  reasonStatusUnknown,
			message: messageStatusUnknown,
		},
	}
}

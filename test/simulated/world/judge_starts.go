package world

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A startProblem is what kept a pod from starting when it first showed that.
type startProblem struct {
	name  string
	since time.Time
	// shown is when the pod showed it.
	shown time.Time
}

// problemOf reads what keeps a pod from starting, and since when, in the whole seconds of the API. The name is empty if
// nothing does.
func problemOf(pod *corev1.Pod) (name string, since time.Time) {
	if anyRan(pod) || ledger.Ended(pod) {
		return "", time.Time{}
	}
	at := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		at[c.Type] = c
	}
	if c := at[corev1.PodScheduled]; c.Status == corev1.ConditionFalse {
		return c.Reason, c.LastTransitionTime.Truncate(time.Second)
	}
	prepared := at[corev1.PodReadyToStartContainers]
	if prepared.Status == corev1.ConditionFalse {
		return "VolumeOrSandbox", prepared.LastTransitionTime.Truncate(time.Second)
	}
	for _, s := range pod.Status.ContainerStatuses {
		for problem, words := range problemReasons {
			if waiting := s.State.Waiting; waiting != nil && *waiting == words {
				return problem, prepared.LastTransitionTime.Truncate(time.Second)
			}
		}
	}
	return "", time.Time{}
}

// anyRan reports whether a container of the pod has run, init containers included.
func anyRan(pod *corev1.Pod) bool {
	return hasRun(pod) || slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil && !s.State.Terminated.FinishedAt.IsZero()
	})
}

// observeStart records what keeps a pod from starting.
func (p *podRecord) observeStart(w apiserver.Write) {
	if p.problem.name != "" {
		return
	}
	if name, since := problemOf(p.pod); name != "" {
		p.problem = startProblem{name, since, w.Time}
	}
}

// startLimit is when a pod has had the time that the Job's options give its problem, and what becomes of it then; ok
// is false if they say nothing.
func (r *jobRecord) startLimit(p *podRecord) (at time.Time, action string, ok bool) {
	for _, o := range optionsOf(r.job).NeverStarted {
		if o.Problem == p.problem.name {
			return p.problem.since.Add(time.Duration(o.AfterSeconds) * time.Second), strings.Replace(o.Action, "Count", "", 1), true
		}
	}
	return time.Time{}, "", false
}

// startedLate reports whether a pod had not started in time, as far as an executor knows, so that the action follows.
func (j *judge) startedLate(r *jobRecord, p *podRecord, by, action string) bool {
	at, asked, ok := r.startLimit(p)
	return ok && asked == action && !at.After(j.now.Add(j.askew())) && (p.ranAt.IsZero() || !j.knows(by, p.ranAt))
}

// endsUnstarted reports whether the stored version of a pod is to be deleted because it has not started in time. A deletion
// that meets a pod which has started would end what runs.
func (j *judge) endsUnstarted(r *jobRecord, p *podRecord, by string) bool {
	return j.startedLate(r, p, by, "") && !anyRan(p.pod)
}

// neverStartedMissing: a pod must not have started for so long that the Job fails.
func (j *judge) neverStartedMissing(r *jobRecord, by string) string {
	for _, p := range j.inSight(r) {
		if j.startedLate(r, p, by, "FailJob") {
			return ""
		}
	}
	return "no pod has not started for so long"
}

// lateStarts are the times at which pods of the Job should have started.
func (j *judge) lateStarts(r *jobRecord) (at []time.Time) {
	if len(optionsOf(r.job).NeverStarted) == 0 {
		return nil
	}
	for _, p := range j.pods {
		if due, _, ok := r.startLimit(p); ok && (p.job == r || r.had(p)) {
			at = append(at, due)
		}
	}
	return at
}

// judgeStarts: at rest, no pod waits to start for longer than the Job's options give it.
func (j *judge) judgeStarts(r *jobRecord) {
	if suspended(r.job) || mayBeHeld(r.job) {
		return
	}
	for _, p := range r.live {
		name, _ := problemOf(p.pod)
		if at, action, ok := r.startLimit(p); ok && name != "" && p.active() && r.selects(p.pod) && j.settled(at) {
			j.breach("liveness", r.key, r.uid, "pod %s has not started (%s) since %s, and it was to be ended at %s (%s)", p.key.Name, name, p.problem.since, at, action)
		}
	}
}

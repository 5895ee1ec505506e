package podjob

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// How groups end.
const (
	standsSuspended = "a group stands suspended"
	standsIdle      = "a group stands with parallelism 0"
	isComplete      = "a group is complete"
	hasFailed       = "a group has failed"
)

var groupEnds = []string{standsSuspended, standsIdle, isComplete, hasFailed}

// end judges a world when nothing can be left to do.
func (j *judge) end() {
	if j.hopeless() {
		return
	}
	if !j.owner.gone {
		for _, g := range j.owner.groups {
			j.judgeRest(g)
		}
	}
	for _, uid := range sortedKeys(j.pods) {
		j.judgeLedger(j.pods[uid])
	}
}

// judgeRest checks that a group has finished, or waits for its user.
func (j *judge) judgeRest(g *group) {
	running := 0
	for _, r := range j.pods {
		if r.group == g && !r.gone && !r.left && !ended(r.Pod) {
			running++
		}
	}
	status := &g.job.Status
	switch end := finished(status); {
	case end == batchv1.JobComplete:
		j.came(isComplete)
	case end == batchv1.JobFailed:
		j.came(hasFailed)
		j.came("a group has failed: " + reason(status, batchv1.JobFailed))
	case isSuspended(g.job) && condition(status, batchv1.JobSuspended) != "":
		j.came(standsSuspended)
	case *g.job.Spec.Parallelism == 0:
		j.came(standsIdle)
	default:
		j.breach("liveness", "nothing has hindered group %s for %v, and it has not finished: active %d, succeeded %d, failed %d, conditions %v",
			g.name, settleTime, status.Active, status.Succeeded, status.Failed, conditionsOf(status))
	}
	if running > 0 || status.Active > 0 {
		j.breach("liveness", "group %s has come to rest, and %d pods run; status.active is %d", g.name, running, status.Active)
	}
	if lists := uncounted(status); len(lists.Succeeded)+len(lists.Failed) > 0 {
		j.breach("liveness", "group %s has come to rest, and pods stay uncounted: %v", g.name, lists)
	}
}

func reason(status *batchv1.JobStatus, t batchv1.JobConditionType) string {
	for _, c := range status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// judgeLedger checks that a pod was counted, or that one of the reasons of the package comment
// holds.
func (j *judge) judgeLedger(r *record) {
	switch {
	case r.as != "" && !r.counted && !j.owner.gone:
		j.breach("I2", "pod %s was recorded as %s, and never counted", r.Name, r.as)
	case !r.gone && !r.left && tracked(r.Pod) && !j.waits(r):
		j.breach("liveness", "pod %s keeps its finalizer (%s)", r.Name, describe(r.Pod))
	case j.owner.gone && !r.gone && !r.left:
		j.breach("liveness", "pod %s is left, and its owner is gone", r.Name)
	case r.as == "" && r.released == "" && r.loss == "" && !j.waits(r):
		j.breach("I2", "pod %s was neither counted nor released (%s)", r.Name, describe(r.Pod))
	}
}

// waits reports whether a failed pod waits for the next pod of its index, which takes over its
// number of failures, and none is created while the group is suspended or has parallelism 0.
func (j *judge) waits(r *record) bool {
	return r.group.job.Spec.BackoffLimitPerIndex != nil && finished(&r.group.job.Status) == "" && ended(r.Pod) && !j.owner.gone
}

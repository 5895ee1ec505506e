package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// endsPods reports whether a Job's active pods are ended, and not deleted, when it fails.
func endsPods(job *batchv1.Job) bool { return optionsOf(job).WhenJobFails == "EndPods" }

// judgeTold: an executor limits how long a pod may be active only if its Job has failed and asks for that, and to no more
// than it has been active for.
func (j *judge) judgeTold(w apiserver.Write, p *podRecord, old, next *corev1.Pod) {
	if next == nil || valueOr(old.Spec.ActiveDeadlineSeconds, 0) == valueOr(next.Spec.ActiveDeadlineSeconds, 0) {
		return
	}
	r, limit := p.job, time.Duration(valueOr(next.Spec.ActiveDeadlineSeconds, 0))*time.Second
	switch start := old.Status.StartTime; {
	case r == nil || !j.lately(r, endsPods) || !ledger.IsTrue(r.job, batchv1.JobFailureTarget):
		j.breach("options", p.key, p.uid, "%s told a pod to end, and its Job has not failed or does not ask for that", w.By)
	case start == nil || limit <= 0:
		j.breach("options", p.key, p.uid, "%s told a pod to end within %s, and its node has taken it at %v", w.By, limit, start)
	case start.Add(limit).After(j.now.Add(time.Second + j.askew())):
		j.breach("options", p.key, p.uid, "%s told a pod to end that may be active for %s since %s", w.By, limit, start)
	}
}

// endOverdueAt is when a pod that was told to end is deleted if it has not: a minute after its grace period. ok is false for
// a pod that was not told.
func endOverdueAt(pod *corev1.Pod) (at time.Time, ok bool) {
	limit := pod.Spec.ActiveDeadlineSeconds
	if limit == nil || pod.Status.StartTime == nil {
		return time.Time{}, false
	}
	seconds := *limit + valueOr(pod.Spec.TerminationGracePeriodSeconds, 0)
	return pod.Status.StartTime.Add(time.Duration(seconds)*time.Second + time.Minute), true
}

// mustBeEnded reports whether an executor must not delete an active pod of a Job that has failed, because its node can end it.
func (j *judge) mustBeEnded(r *jobRecord, p *podRecord, by string) bool {
	asks := ledger.IsTrue(r.job, batchv1.JobFailureTarget) && j.always(r, func(job *batchv1.Job) bool { return endsPods(job) && !suspended(job) })
	known := r.decidedBy == by || j.knows(by, r.decidedAt)
	if !asks || !known || j.podjob || p.takenAt.IsZero() || !j.knows(by, p.takenAt) {
		return false
	}
	given := j.now.Add(j.askew())
	at, told := endOverdueAt(p.pod)
	return r.decidedAt.Add(time.Hour).After(given) && !(told && !at.After(given))
}

// mayYetEnd reports whether a Job that has failed still waits for a pod that was told to end.
func (j *judge) mayYetEnd(r *jobRecord, p *podRecord) bool {
	at, told := endOverdueAt(p.pod)
	return p.active() && endsPods(r.job) && told && !j.settled(at.Add(j.askew()))
}

// endedWithJob reports whether a pod ended because it was told to when its Job had failed. Then its index has not failed.
func (j *judge) endedWithJob(r *jobRecord, p *podRecord) bool {
	return ledger.IsTrue(r.job, batchv1.JobFailureTarget) && j.always(r, endsPods) && !j.podjob &&
		p.pod.DeletionTimestamp == nil && p.pod.Status.Reason == batchv1.JobReasonDeadlineExceeded
}

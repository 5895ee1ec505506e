package world

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
)

// A Job with a termination deadline takes pods for failed that are being deleted and do not end. No
// write says when that is: time passes.

// overdueAt is when a pod that is being deleted and has not ended is taken for failed; ok is false for
// any other pod, for Jobs without a termination deadline, and for Jobs that look at the pod's node while that was always Ready.
func (r *jobRecord) overdueAt(pod *corev1.Pod) (at time.Time, ok bool) {
	if r.terminationDeadline == 0 || pod.DeletionTimestamp == nil || ledger.Ended(pod) {
		return time.Time{}, false
	}
	at = pod.DeletionTimestamp.Add(r.terminationDeadline)
	if r.nodes == nil || pod.Spec.NodeName == "" {
		return at, true
	}
	if n := r.nodes[pod.Spec.NodeName]; n != nil && !n.lostAt.IsZero() {
		return latest(at, n.lostAt), true
	}
	return time.Time{}, false
}

// mayBeOverdue reports whether an executor may take a pod for failed, whatever its clock says.
func (j *judge) mayBeOverdue(r *jobRecord, p *podRecord) bool {
	at, ok := r.overdueAt(p.pod)
	return ok && !p.gone && !at.After(j.now.Add(j.askew()))
}

// mustBeOverdue reports whether that was so long ago that all must know it. It is false if the Job has
// lost its deadline, and for a Job that is being deleted, because its pods go with it.
func (j *judge) mustBeOverdue(r *jobRecord, p *podRecord) bool {
	at, ok := r.overdueAt(p.pod)
	if n := r.nodes[p.pod.Spec.NodeName]; n != nil && n.ready {
		return false // It is back.
	}
	return ok && !r.waitsForEver && r.job.DeletionTimestamp == nil && !p.gone && j.settled(at.Add(j.askew()))
}

// passTime finds the pods that are overdue by now. They have to be counted as if they had ended.
func (j *judge) passTime() {
	j.judgePassedOver()
	for uid, r := range j.jobs {
		if r.terminationDeadline == 0 || r.job.DeletionTimestamp != nil || j.namespaceGoes(r) {
			continue
		}
		for _, id := range sortedUIDs(r.live) {
			if p := r.live[id]; j.mayBeOverdue(j.jobs[uid], p) {
				r.overdue(p, j.now, j.askew())
			}
		}
	}
}

// overdue notes that a pod is overdue. askew is how much later some executor may notice.
func (r *jobRecord) overdue(p *podRecord, now time.Time, askew time.Duration) {
	at, _ := r.overdueAt(p.pod)
	if p.overdueSince.IsZero() {
		p.overdueSince = now
	}
	if !holds(p.pod) || !r.selects(p.pod) || r.had(p) {
		return
	}
	p.due, p.dueAt, p.dueOrder, p.dueBefore = true, at.Add(askew), math.MaxUint64, true
	r.ends = append(r.ends, p)
	if p.finished = now; finishTime(p.pod).Before(now) {
		p.finished = finishTime(p.pod)
	}
}

// noteCrossings finds the Jobs with pods that become overdue because the executors' clocks are set, or are no longer
// overdue. Their counts change, but no event says so: an executor notices when it asks the engine next.
func (j *judge) noteCrossings(ahead time.Duration) {
	for _, r := range j.jobs {
		for _, p := range r.live {
			at, ok := r.overdueAt(p.pod)
			if ok && !p.gone && at.After(j.now.Add(j.ahead)) != at.After(j.now.Add(ahead)) {
				r.clockUnseen = true
			}
		}
	}
}

// overdueBefore reports whether the pod was overdue before it ended. An executor may have taken it for
// failed then.
func (p *podRecord) overdueBefore() bool {
	return !p.overdueSince.IsZero() && (p.endedAt.IsZero() || !p.overdueSince.After(p.endedAt))
}

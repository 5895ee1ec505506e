package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeRelease checks I1 when an executor removes the tracking finalizer: the stored
// status accounts for the pod, or the pod need not be counted. The Job is the one that
// controlled the pod before this write.
func (j *judge) judgeRelease(w apiserver.Write, p *podRecord) {
	r := p.job
	if r == nil { // judgeOwnership checks whether an executor may do so.
		p.excuse = "no Job controlled it"
		return
	}
	if p.accounted = r.accounts(p); p.accounted {
		return
	}
	if p.excuse = j.uncountable(r, p); p.excuse != "" {
		return
	}
	if ledger.Ended(p.pod) {
		j.breach("I1", p.key, p.uid, "%s took the finalizer from a pod that had ended (%s) before any stored status of Job %s accounted for it, and a status must do so first",
			w.By, p.version().Status.Phase, r.key.Name)
		return
	}
	if p.excuse = j.giveUp(r, p, w.By); p.excuse != "" {
		return
	}
	j.breach("I1", p.key, p.uid, "%s took the finalizer from a pod of Job %s that may still run, and nothing asks for its end: not its Job's suspension, scale, end or deletion",
		w.By, r.key.Name)
}

// accounts reports whether the stored status accounts for a pod: its UID is or was in a
// list, or its index is listed as completed.
func (r *jobRecord) accounts(p *podRecord) bool {
	if r.entries[p.uid] != nil {
		return true
	}
	if !ledger.IsIndexed(r.job) || !p.succeeded() {
		return false
	}
	// An index that failed for good stays failed, even if a pod of it succeeds later.
	ix := podIndex(p.pod)
	return r.completed.Has(ix) || r.failed.Has(ix)
}

// uncountable says why an ended pod counts nowhere; empty if it must be counted.
func (j *judge) uncountable(r *jobRecord, p *podRecord) string {
	// A pod that ended while the decision to release it was under way may still have
	// been running in the view of the executor.
	lateEnd := !ledger.Ended(p.pod) || !j.old(p.endedAt)
	switch {
	case r.gone:
		return "its Job is gone"
	case !r.finishedAt.IsZero():
		return "its Job is finished"
	case !r.deletedAt.IsZero() && lateEnd:
		return "its Job is being deleted"
	case j.leavesWithJob(r, p):
		return "it is deleted with its Job"
	case ledger.IsTrue(r.job, batchv1.JobSuccessCriteriaMet) && lateEnd:
		return "its Job has succeeded without it"
	case p.gone && controllerUID(p.pod) != r.uid:
		return "its Job did not control it in the end"
	case j.podjob && p.job != r:
		return "its Job does not control it, and podjob adopts no pod"
	case !p.strayAt.IsZero() && (!r.selects(p.pod) || !j.old(p.strayAt)):
		return "its Job does not select it"
	case j.lately(r, func(job *batchv1.Job) bool { return !inRange(job, p.pod) }):
		return "its Job does not ask for its index"
	case j.ignored(r, p):
		return "the pod failure policy ignores it"
	}
	return ""
}

// leavesWithJob reports whether a pod is deleted together with its Job or namespace: nothing had
// said how the Job ends when the Job was deleted, and the pod had not ended before its own
// deletion, or may not have. Such a pod says nothing about the Job, whatever it ends with.
func (j *judge) leavesWithJob(r *jobRecord, p *podRecord) bool {
	decidedBefore := !r.decidedAt.IsZero() && (r.deletedAt.IsZero() || r.decidedAt.Before(r.deletedAt))
	return (!r.deletedAt.IsZero() || j.namespaceGoes(r)) && !p.deletedAt.IsZero() && !decidedBefore && r.entries[p.uid] == nil
}

// stoppedWithJob also says that every view which shows the pod's end shows its deletion, and that no
// verdict was declared since: after one, such as that of the deadline, all pods that are left count.
func (j *judge) stoppedWithJob(r *jobRecord, p *podRecord) bool {
	return r.job.DeletionTimestamp != nil && r.decidedAt.IsZero() && j.leavesWithJob(r, p) && (p.first == nil || p.first.DeletionTimestamp != nil)
}

// ignored reports whether the pod failure policy ignores the pod's failure, by the pod's
// first or by its current report. A pod of a failed Job counts as failed if it still runs in
// the view of the executor, and the policy may ignore that because of a condition of the pod.
func (j *judge) ignored(r *jobRecord, p *podRecord) bool {
	reports := []*corev1.Pod{p.version(), p.pod}
	switch late := ledger.IsTrue(r.job, batchv1.JobFailureTarget) && !j.old(p.endedAt); {
	case late && p.running != nil:
		reports = append(reports, p.running)
	case !late && p.succeeded():
		return false
	}
	return slices.ContainsFunc(reports, func(pod *corev1.Pod) bool {
		return policyAction(r.job, pod) == batchv1.PodFailurePolicyActionIgnore
	})
}

// giveUp says why a running pod may be ended without being counted; empty if it may
// not.
func (j *judge) giveUp(r *jobRecord, p *podRecord, by string) string {
	switch {
	case j.lately(r, suspended):
		return "its Job is suspended"
	case j.lately(r, func(job *batchv1.Job) bool { return !inRange(job, p.pod) }):
		return "its Job does not ask for its index"
	case j.shared(r, p, by):
		return "another pod has its index"
	case j.surplus(r, by):
		return "there are more pods than wanted"
	}
	return ""
}

// shared reports whether another pod of the index exists, or may still exist in the view
// of an executor.
func (j *judge) shared(r *jobRecord, p *podRecord, by string) bool {
	ix := podIndex(p.pod)
	if !ledger.IsIndexed(r.job) {
		return false
	}
	if r.completed.Has(ix) || r.failed.Has(ix) {
		return true
	}
	for _, other := range j.inSight(r) {
		if other != p && podIndex(other.pod) == ix && (other.active() || other.succeeded() || !j.old(other.endedAt) || !j.old(other.deletedAt) || r.taken(other, by)) {
			return true
		}
	}
	return false
}

// surplus reports whether more pods run, or may still run in the view of an executor, than
// some recent version of the Job wants.
func (j *judge) surplus(r *jobRecord, by string) bool {
	var running, succeeded int64
	for _, p := range j.inSight(r) {
		if p.active() || !j.old(p.endedAt) || !j.old(p.deletedAt) || r.taken(p, by) {
			running++
		}
	}
	succeeded = r.succeeded(r.all())
	for _, job := range j.recent(r) {
		want := int64(valueOr(job.Spec.Parallelism, 1))
		if job.Spec.Completions != nil {
			want = min(want, max(0, int64(*job.Spec.Completions)-succeeded))
		}
		if running > want {
			return true
		}
	}
	return false
}

// A sight is a view of a Job's pods: which of them have ended, which were released
// without being counted, and which indexes the status lists as completed.
type sight struct {
	completed    indexset.Set
	ended, letGo func(*podRecord) bool
	statuses     []*batchv1.JobStatus // the uncounted pods of any of them count
}

// all is the complete view.
func (r *jobRecord) all() sight {
	return sight{r.completed, func(*podRecord) bool { return true }, func(p *podRecord) bool { return p.excuse != "" }, []*batchv1.JobStatus{&r.job.Status}}
}

// least is what an executor must know of successes. The Job need not count a pod that it
// has lost for good.
func (j *judge) least(r *jobRecord, by string) sight {
	s := r.all()
	s.letGo = func(p *podRecord) bool { return p.excuse != "" || r.hasLost(p) }
	s.completed, s.ended = j.completedTo(r, by), func(p *podRecord) bool { return j.mustKnowEnd(r, p, by) && !j.justReleased(p, by) }
	return s
}

// hasLost reports whether the Job does not control the pod any more and cannot adopt it: its
// selector does not match, something else controls the pod, or the pod is being deleted. This
// also holds if a webhook lets the Job lose the pod but not release it.
func (r *jobRecord) hasLost(p *podRecord) bool {
	return p.job != r && (!r.selects(p.pod) || metav1.GetControllerOfNoCopy(p.pod) != nil || p.pod.DeletionTimestamp != nil)
}

// justReleased reports whether another writer released the pod a moment ago: an executor may
// see that before it sees the status that accounts for the pod.
func (j *judge) justReleased(p *podRecord, by string) bool {
	return p.released.by != "" && !j.told(p.released, by)
}

// most is what an executor may know of the pods that ended: it may not yet have seen that
// another writer released a pod, or, if answers may be lost, that it did so itself. It also
// may have decided before the Job lost the pod: it then releases the pod as one of nobody,
// while the status that counts the pod is on its way. That status is next; it may also move
// pods from the list to the counters.
func (j *judge) most(r *jobRecord, by string, next *batchv1.Job) sight {
	s := r.all()
	s.statuses = append(s.statuses, &next.Status)
	s.letGo = func(p *podRecord) bool {
		late := (j.troubled() || r.hasLost(p)) && !j.old(p.released.at)
		return j.stoppedWithJob(r, p) || (p.excuse != "" && j.told(p.released, by) && !late)
	}
	return s
}

// completedTo are the completed indexes that an executor must know from the status.
func (j *judge) completedTo(r *jobRecord, by string) (known indexset.Set) {
	for ix := range r.completed.All {
		if j.told(r.done[ix], by) {
			known = known.Union(indexset.Of(ix))
		}
	}
	return known
}

// forgotten reports whether a status recorded the pod's index, and a later one dropped the
// index because the Job did not ask for it any more. The index has to run again then. A pod that
// the Job adopted since it was released, by another Job, has yet to be recorded.
func (r *jobRecord) forgotten(p *podRecord) bool {
	return !p.released.at.IsZero() && !p.released.at.Before(p.claimedAt) && p.excuse == "" && !r.completed.Has(podIndex(p.pod))
}

// succeeded is how many pods, or how many indexes in range for an Indexed Job, have
// succeeded in that view and count.
func (r *jobRecord) succeeded(s sight) (n int64) {
	done := s.completed.Below(valueOr(r.job.Spec.Completions, 0)).Minus(r.failed)
	for _, p := range r.ends {
		e := r.entries[p.uid]
		if !s.ended(p) || (e != nil && e.as == asFailed) || (e == nil && (!p.succeeded() || s.letGo(p))) {
			continue
		}
		if ix := podIndex(p.pod); !ledger.IsIndexed(r.job) {
			n += r.claims(p, s.statuses...)
		} else if inRange(r.job, p.pod) && !r.failed.Has(ix) && !r.forgotten(p) {
			done = done.Union(indexset.Of(ix))
		}
	}
	if ledger.IsIndexed(r.job) {
		return done.Len()
	}
	return n
}

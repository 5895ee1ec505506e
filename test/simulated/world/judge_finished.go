package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// keptFinished is how many pods of a phase a Job keeps while it runs; nil: all.
type keptFinished struct{ Succeeded, Failed *int }

func (k *keptFinished) of(phase corev1.PodPhase) *int {
	switch {
	case k == nil:
		return nil
	case phase == corev1.PodSucceeded:
		return k.Succeeded
	default:
		return k.Failed
	}
}

// judgeDeletionOfCounted: an executor deletes a finished pod of a running Job only if the Job does not keep all, after a
// stored status has counted the pod, and if enough that finished no earlier are there. judgeDelay takes the pod for one
// that still is there.
func (j *judge) judgeDeletionOfCounted(w apiserver.Write, r *jobRecord, p *podRecord) {
	if !p.accounted || holds(p.pod) || p.endedAt.After(p.released.at) || !r.decidedAt.IsZero() && !j.old(r.decidedAt) {
		return
	}
	keep := optionsOf(r.job).KeepFinishedPods.of(p.pod.Status.Phase)
	uncounted := r.job.Status.UncountedTerminatedPods
	switch {
	case !r.decidedAt.IsZero():
		j.breach("deletion", p.key, p.uid, "%s deleted a finished pod of Job %s, which has the condition %s and keeps its pods", w.By, r.key.Name, decided(r.job))
	case keep == nil:
		j.breach("deletion", p.key, p.uid, "%s deleted a pod of Job %s that was counted (%s), and the Job keeps all of them", w.By, r.key.Name, p.pod.Status.Phase)
	case uncounted != nil && slices.Contains(slices.Concat(uncounted.Succeeded, uncounted.Failed), p.uid):
		j.breach("deletion", p.key, p.uid, "%s deleted a finished pod of Job %s that the status does not count yet", w.By, r.key.Name)
	case j.laterFinished(r, p) < *keep:
		j.breach("deletion", p.key, p.uid, "%s deleted a finished pod of Job %s, and %d finished later, of which it keeps %d", w.By, r.key.Name, j.laterFinished(r, p), *keep)
	}
	p.pruned = true
}

// laterFinished is how many pods of the same phase finished no earlier, as far as the executor may see them.
func (j *judge) laterFinished(r *jobRecord, p *podRecord) (n int) {
	for _, q := range j.inSight(r) {
		deleted := !q.deletedAt.IsZero() && j.old(q.deletedAt)
		if q != p && ledger.Ended(q.pod) && q.pod.Status.Phase == p.pod.Status.Phase && !deleted && !finishTime(q.pod).Before(finishTime(p.pod)) {
			n++
		}
	}
	return n
}

// judgeKept: when nothing happens to a Job any more, it has no more finished pods that are counted than it keeps, and those
// that its retry delay and its end need.
func (j *judge) judgeKept(r *jobRecord) {
	keep := optionsOf(r.job).KeepFinishedPods.of(corev1.PodSucceeded)
	if keep == nil || !r.decidedAt.IsZero() || r.job.DeletionTimestamp != nil {
		return
	}
	n := 0
	for _, p := range r.live {
		if p.pod.Status.Phase == corev1.PodSucceeded && p.pod.DeletionTimestamp == nil && !slices.Contains(p.pod.Finalizers, batchv1.JobTrackingFinalizer) && p.accounted && r.selects(p.pod) {
			n++
		}
	}
	if most := max(1, *keep); n > most {
		j.breach("liveness", r.key, r.uid, "%d pods that succeeded and are counted are there, and the Job keeps %d", n, most)
	}
}

package world

import (
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeDeletion: an executor deletes a pod only for its Job's suspension, scale or
// end.
func (j *judge) judgeDeletion(w apiserver.Write, p *podRecord) {
	r := p.job
	if r == nil || p.pod.DeletionTimestamp != nil {
		return
	}
	switch {
	case j.podjob && r.gone:
	case p.excuse != "": // It was released for one of these reasons before.
	case ledger.Ended(p.pod):
		if !j.judgeDeletionOfEnded(w, r, p) {
			j.judgeDeletionOfCounted(w, r, p)
		}
	case !r.decidedAt.IsZero() && j.mustBeEnded(r, p, w.By):
		j.breach("options", p.key, p.uid, "%s deleted a pod of Job %s, whose active pods are to be ended and to stay", w.By, r.key.Name)
	case !r.decidedAt.IsZero():
	case j.giveUp(r, p, w.By) != "", j.endsUnstarted(r, p, w.By):
	default:
		j.breach("deletion", p.key, p.uid, "%s deleted a pod of Job %s, and nothing asks for its end: not its Job's suspension, scale or end", w.By, r.key.Name)
	}
}

// judgeDeletionOfEnded: a pod that ended by itself stays when its Job has finished, and so do
// its logs. An executor may delete it only if it need not know that the pod has ended, and if
// something may have asked for the pod's end while it ran.
func (j *judge) judgeDeletionOfEnded(w apiserver.Write, r *jobRecord, p *podRecord) (broken bool) {
	if r.finishedAt.IsZero() || (!j.knowsEnd(r, p, w.By) && j.mayEndRunning(r, p)) {
		return false
	}
	j.breach("deletion", p.key, p.uid, "%s deleted a pod of Job %s that had ended by itself %s before, and that must stay with its logs",
		w.By, r.key.Name, w.Time.Sub(p.endedAt))
	return true
}

// knowsEnd reports whether an executor must know that a pod has ended: every view shows it,
// or the executor has recorded it.
func (j *judge) knowsEnd(r *jobRecord, p *podRecord, by string) bool {
	e := r.entries[p.uid]
	return j.old(p.endedAt) || (e != nil && e.by == by && !j.troubled())
}

// mayEndRunning reports whether something may have asked for a pod's end while it ran, in
// some view: its Job failed, or succeeded by its policy, or there were more pods than wanted.
func (j *judge) mayEndRunning(r *jobRecord, p *podRecord) bool {
	if !ledger.IsTrue(r.job, batchv1.JobComplete) || r.job.Spec.SuccessPolicy != nil || r.tampered || p.revivals > 0 || p.flipped {
		return true
	}
	if len(j.recent(r)) > 1 || suspended(r.job) {
		return true
	}
	var running, succeeded int32
	for _, other := range j.inSight(r) {
		switch {
		case other.active() || !j.old(other.endedAt) || !j.old(other.deletedAt):
			if running++; other != p && ledger.IsIndexed(r.job) && podIndex(other.pod) == podIndex(p.pod) {
				return true
			}
		case other.succeeded():
			succeeded++
		}
	}
	want := valueOr(r.job.Spec.Parallelism, 1)
	if completions := r.job.Spec.Completions; completions != nil {
		want = min(want, *completions-succeeded)
	}
	return running > want
}

// judgeJobDeletion: an executor deletes a Job for its time to live, or a
// CronJob's for its history or its concurrency policy.
func (j *judge) judgeJobDeletion(w apiserver.Write, r *jobRecord) {
	if r.job.DeletionTimestamp != nil {
		return
	}
	if missing := j.expiryMissing(w, r); missing == "" || j.cronDeletes(w, r) {
		return
	} else if r.cron() == "" {
		j.breach("ttl", r.key, r.uid, "%s deleted a Job, and %s", w.By, missing)
	} else {
		j.breach("cron", r.key, r.uid, "%s deleted a Job of a CronJob, and neither its history limits nor its concurrency policy ask for that, and %s", w.By, missing)
	}
}

package world

import (
	"jobpolicy.dev/test/world/apiserver"
)

// judgeDeletion: an executor deletes a pod only for its Job's suspension, scale or
// end.
func (j *judge) judgeDeletion(w apiserver.Write, p *podRecord) {
	r := p.job
	if r == nil || ended(p.pod) || p.pod.DeletionTimestamp != nil {
		return
	}
	switch {
	case p.excuse != "": // It was released for one of these reasons before.
	case !r.decidedAt.IsZero():
	case j.giveUp(r, p, w.By) != "":
	default:
		j.breach("deletion", p.key, p.uid, "%s deleted a pod of Job %s, and nothing asks for its end: not its Job's suspension, scale or end", w.By, r.key.Name)
	}
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

package world

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeCreation checks a pod that an executor created against I6, I8 and I12.
func (j *judge) judgeCreation(w apiserver.Write, pod *corev1.Pod) {
	r := j.jobs[controllerUID(pod)]
	if r == nil { // The book says so.
		return
	}
	j.judgeAnswer(w, r)
	j.judgeLate(w, r, prompt, "created a pod")
	if text := j.idle(w, r); text != "" {
		j.breach("I6", r.key, r.uid, "%s created pod %s for a Job that %s", w.By, w.Key.Name, text)
		return
	}
	room := j.room(w, r)
	if room < 1 {
		j.breach("I6", r.key, r.uid, "%s created pod %s, and with it there are %d more pods than the Job wants", w.By, w.Key.Name, 1-room)
	}
	if ledger.IsIndexed(r.job) {
		j.judgeIndex(w, r, pod)
	}
	j.judgeDelay(w, r, pod, int(room)-1)
	j.judgeTryDeadline(w, r, pod)
	if !j.terse && !j.podjob { // Package podjob gives pods names and annotations of its own.
		j.judgeNewPod(w, r, pod)
	}
	j.judgeRaised(w, r, pod)
}

// idle says why the Job wants no pods at all; empty if it does.
func (j *judge) idle(w apiserver.Write, r *jobRecord) string {
	switch {
	case r.gone && j.old(r.goneAt):
		return "is gone"
	case !r.deletedAt.IsZero() && j.old(r.deletedAt):
		return "is being deleted"
	case !r.finishedAt.IsZero() && (r.finishedBy == w.By || j.old(r.finishedAt)):
		return sprint("is %s", finished(r.job))
	case !r.decidedAt.IsZero() && (r.decidedBy == w.By || j.old(r.decidedAt)):
		return sprint("has the condition %s", decided(r.job))
	case j.always(r, suspended):
		return "is suspended"
	}
	return ""
}

// room is how many more pods the Job may have: the number that the most generous recent
// version wants, less the pods that the executor must know of.
func (j *judge) room(w apiserver.Write, r *jobRecord) int64 {
	var busy int64
	waits := j.always(r, replacesFailedOnly)
	for _, p := range r.live {
		if j.shownOf(r, p, w.By) && (p.active() || (waits && p.terminating() && !j.mayBeOverdue(r, p))) {
			busy++
		}
	}
	return j.wanted(r, r.succeeded(j.least(r, w.By))-j.unknownRevivals(r, w.By)) - busy
}

// unknownRevivals is how many pods that were counted as succeeded have the finalizer again,
// or had it still when their owner changed, and need not be counted a second time: the
// executor need not know yet, or the Job has lost the pod.
func (j *judge) unknownRevivals(r *jobRecord, by string) (n int64) {
	if ledger.IsIndexed(r.job) {
		return 0
	}
	for _, p := range r.ends {
		if e := r.entries[p.uid]; e != nil && e.as == asSucceeded && !p.revivedAt.IsZero() && (!j.knows(by, p.revivedAt) || r.hasLost(p)) {
			n += r.claims(p, &r.job.Status) - int64(e.counted)
		}
	}
	return n
}

// wanted is the number of pods that the most generous recent version of the Job wants
// at a time, after this many have succeeded.
func (j *judge) wanted(r *jobRecord, succeeded int64) (most int64) {
	for _, job := range j.recent(r) {
		want := int64(valueOr(job.Spec.Parallelism, 1))
		switch {
		case suspended(job), held(job):
			want = 0
		case job.Spec.Completions != nil:
			want = min(want, int64(*job.Spec.Completions)-succeeded)
		case succeeded > 0:
			want = 0 // A work queue starts no more pods after one has succeeded.
		}
		most = max(most, want)
	}
	return most
}

// judgeIndex checks I6 for one index: it has at most one live pod, and none after it is
// done.
func (j *judge) judgeIndex(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	ix := podIndex(pod)
	if j.always(r, func(job *batchv1.Job) bool { return !inRange(job, pod) }) {
		j.breach("I6", r.key, r.uid, "%s created pod %s with index %d, which the Job does not ask for", w.By, w.Key.Name, ix)
		return
	}
	if m, done := r.done[ix]; done && j.told(m, w.By) {
		j.breach("I6", r.key, r.uid, "%s created pod %s with index %d, which is done by the stored status", w.By, w.Key.Name, ix)
	}
	waits := j.always(r, replacesFailedOnly)
	for _, uid := range sortedUIDs(r.live) {
		p := r.live[uid]
		if podIndex(p.pod) != ix || !j.shownOf(r, p, w.By) {
			continue
		}
		if p.active() || (waits && p.terminating() && !j.mayBeOverdue(r, p)) {
			j.breach("I6", r.key, r.uid, "%s created pod %s with index %d, which pod %s still has", w.By, w.Key.Name, ix, p.key.Name)
		}
	}
}

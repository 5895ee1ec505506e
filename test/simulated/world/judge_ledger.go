package world

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeLedger checks an executor's status against what package ledger says of it (I2, I3, I4), and
// what it records against what happened to the pods.
func (j *judge) judgeLedger(w apiserver.Write, r *jobRecord, next *batchv1.Job, problems []ledger.Problem) {
	for _, problem := range problems {
		if !j.mayNotKnow(w.By, r, problem) {
			j.breachOf(problem, r, w.By)
		}
	}
	before, after := uncounted(&r.job.Status), uncounted(&next.Status)
	for _, uid := range sortedUIDs(after) {
		if before[uid] == "" {
			j.judgeRecorded(w, r, next, uid, after[uid])
		}
	}
	if ledger.IsIndexed(next) {
		j.judgeIndexes(w, r, next)
	}
}

// mayNotKnow reports whether the writer of a status need not have known that something is wrong with it:
// somebody put a finalizer back, or gave the Job a pod, a moment ago.
func (j *judge) mayNotKnow(by string, r *jobRecord, problem ledger.Problem) bool {
	p := j.pods[problem.Pod]
	if p == nil {
		return false
	}
	revived := holds(p.pod) && !j.knows(by, p.revivedAt)
	switch problem.Kind {
	case ledger.RecordedAgain:
		e := r.entries[p.uid]
		return e != nil && e.counted <= p.revivals
	case ledger.CountedHolder:
		return revived
	case ledger.EndBeforePod:
		return revived || !j.shownOf(r, p, by)
	}
	return false
}

// judgeRecorded compares a new entry with what happened to the pod.
func (j *judge) judgeRecorded(w apiserver.Write, r *jobRecord, next *batchv1.Job, uid types.UID, as outcome) {
	if r.entries[uid] != nil {
		return
	}
	p := j.pods[uid]
	if p == nil || (p.job != r && !r.had(p) && (p.former != r || j.old(p.left))) {
		j.breach("I8", r.key, r.uid, "%s recorded pod %s, which is none of this Job's", w.By, j.podName(uid))
		return
	}
	j.judgeLateRecord(w, r, p)
	if text := j.wrongEntry(w, r, next, p, as); text != "" {
		j.breach("I2", r.key, r.uid, "%s recorded pod %s as %s, and %s", w.By, p.key.Name, as, text)
	}
}

// stepCounts are how often each step of package ledger was taken.
type stepCounts map[ledger.Step]int

// add adds what was taken between two times.
func (s stepCounts) add(before, after map[ledger.Step]int) {
	for step, n := range after {
		if n -= before[step]; n > 0 {
			s[step] += n
		}
	}
}

// had reports whether a pod was due to be counted by the Job.
func (r *jobRecord) had(p *podRecord) bool { return slices.Contains(r.ends, p) }

// wrongEntry says why a pod must not be recorded with this outcome; empty if it may.
func (j *judge) wrongEntry(w apiserver.Write, r *jobRecord, next *batchv1.Job, p *podRecord, as outcome) string {
	switch {
	case !p.released.at.IsZero() && !holds(p.pod) && j.old(p.released.at):
		return "its finalizer was gone long before: a pod is recorded while it holds it"
	case j.always(r, func(job *batchv1.Job) bool { return !inRange(job, p.pod) }):
		return "the Job does not ask for its index"
	case j.stoppedWithJob(r, p):
		return "it is deleted with its Job, so its end says nothing"
	case as == asSucceeded && ledger.IsIndexed(next):
		return "in an Indexed Job the index says that"
	case as == asSucceeded && !p.succeeded() && !p.flipped:
		return fmt.Sprintf("it has not succeeded: its phase is %q", p.pod.Status.Phase)
	case as == asFailed && p.succeeded() && !p.flipped && !j.deletedBefore(r, p) && !p.overdueBefore() && !j.ranOn(w, r, next, p):
		return "it has succeeded"
	case as == asFailed && p.first == nil && !j.asGoodAsFailed(r, next, p) && !j.mayBeOverdue(r, p):
		return "it has not ended, and nothing makes that as good as failed"
	case as == asFailed && p.failed() && !r.fails(p) && !p.flipped && !p.overdueBefore() && !j.ranOn(w, r, next, p):
		return "the pod failure policy ignores its failure"
	}
	return ""
}

// deletedBefore reports whether the pod's deletion counted as a failure before the pod
// succeeded. An executor that sees the deletion of a pod that had succeeded before also
// sees that it had.
func (j *judge) deletedBefore(r *jobRecord, p *podRecord) bool {
	waits := j.always(r, replacesFailedOnly) && !ledger.IsTrue(r.job, batchv1.JobFailureTarget)
	return !p.deletedAt.IsZero() && !waits && p.deletedAt.Before(p.endedAt)
}

// asGoodAsFailed reports whether a pod that has not ended counts as failed: because it is
// being deleted and is replaced at once, or because its Job has failed.
func (j *judge) asGoodAsFailed(r *jobRecord, next *batchv1.Job, p *podRecord) bool {
	if ledger.IsTrue(next, batchv1.JobFailureTarget) || ledger.IsTrue(r.job, batchv1.JobFailureTarget) {
		return true
	}
	return (p.gone || p.pod.DeletionTimestamp != nil) && j.lately(r, func(job *batchv1.Job) bool { return !replacesFailedOnly(job) })
}

// ranOn reports whether a pod still ran when its Job failed, as far as the writer of
// the verdict had to know. Such pods count as failed, whatever the pod failure policy
// says about their end.
func (j *judge) ranOn(w apiserver.Write, r *jobRecord, next *batchv1.Job, p *podRecord) bool {
	if ledger.IsTrue(r.job, batchv1.JobFailureTarget) {
		return p.endedAt.IsZero() || p.endedAt.After(r.decidedOn)
	}
	return ledger.IsTrue(next, batchv1.JobFailureTarget) && !j.knows(w.By, p.endedAt)
}

// claims is how often a pod counts: once, and once more each time it was counted and then
// looked as if it was not. judgeLedger checks that it did. The pod counts once more if it has
// the finalizer, or if one of the statuses lists it as uncounted.
func (r *jobRecord) claims(p *podRecord, statuses ...*batchv1.JobStatus) (n int64) {
	if e := r.entries[p.uid]; e != nil && p.revivals > 0 {
		n = int64(e.counted)
		listed := func(s *batchv1.JobStatus) bool { return uncounted(s)[p.uid] != "" }
		if (!p.gone && holds(p.pod)) || slices.ContainsFunc(statuses, listed) {
			n++
		}
	}
	return max(n, 1)
}

func (j *judge) podName(uid types.UID) string {
	if p := j.pods[uid]; p != nil {
		return p.key.Name
	}
	return string(uid)
}

package world

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

func sprint(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// noRule: a verdict has a reason that no rule has.
const noRule = "no rule has that name"

// failureMissing says what a Job lacks to fail for a reason; empty if nothing.
func (j *judge) failureMissing(w apiserver.Write, r *jobRecord, next *batchv1.Job, reason string) string {
	switch reason {
	case batchv1.JobReasonPodFailurePolicy:
		return j.failJobMissing(r)
	case batchv1.JobReasonBackoffLimitExceeded:
		return j.failuresMissing(r, w.By, next)
	case batchv1.JobReasonDeadlineExceeded:
		return j.deadlineMissing(r)
	case "StartDeadlineExceeded":
		return j.startDeadlineMissing(r, w.By)
	case "PodNeverStarted":
		return j.neverStartedMissing(r, w.By)
	case batchv1.JobReasonMaxFailedIndexesExceeded:
		return tooManyMissing(next, failedIndexes(&next.Status))
	case batchv1.JobReasonFailedIndexes:
		return failedIndexesMissing(next)
	}
	return noRule
}

// failJobMissing: some pod must have failed, with its finalizer on, in a way that
// a FailJob rule matches.
func (j *judge) failJobMissing(r *jobRecord) string {
	for _, p := range r.ends {
		if j.stoppedWithJob(r, p) {
			continue
		}
		if p.flipped || (p.failed() && policyAction(r.job, p.version()) == batchv1.PodFailurePolicyActionFailJob) {
			return ""
		}
		if policyAction(r.job, p.pod) == batchv1.PodFailurePolicyActionFailJob {
			return ""
		}
	}
	return "no pod has failed in a way that a FailJob rule matches"
}

// failuresMissing: more pods must have failed than backoffLimit, or the containers
// have restarted as often.
func (j *judge) failuresMissing(r *jobRecord, by string, next *batchv1.Job) string {
	limit := int64(valueOr(r.job.Spec.BackoffLimit, 6))
	failed := r.failures(j.most(r, by, next), r.mayFail)
	if failed > limit {
		return ""
	}
	if r.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return sprint("%d pods have failed of %d that may", failed, limit)
	}
	var restarts int64
	for _, p := range j.inSight(r) {
		if !j.stoppedWithJob(r, p) || !j.old(p.deletedAt) {
			restarts += p.restarts
		}
	}
	if restarts < max(limit, 1) {
		return sprint("%d pods have failed of %d that may, and containers have restarted %d times", failed, limit, restarts)
	}
	return ""
}

// restarting is how often containers of running pods have restarted, if the Job's limit
// counts that.
func (r *jobRecord) restarting() (n int64) {
	if r.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return 0
	}
	for _, p := range r.live {
		if p.active() && r.selects(p.pod) && p.pod.Status.Phase != corev1.PodUnknown {
			n += restarts(p.pod)
		}
	}
	return n
}

// provenIndexes is how many indexes a status lists as completed. Each of them has been
// checked.
func provenIndexes(next *batchv1.Job) int64 {
	if !ledger.IsIndexed(next) {
		return 0
	}
	return completedIndexes(&next.Status).Len()
}

// failures is how many pods count as failed in that view, recorded or not.
func (r *jobRecord) failures(s sight, fails func(*podRecord) bool) (n int64) {
	for _, p := range r.ends {
		e := r.entries[p.uid]
		switch {
		case e != nil && e.as == asFailed:
			n += r.claims(p, s.statuses...)
		case e != nil || s.letGo(p) || !inRange(r.job, p.pod):
		case fails(p):
			n++
		}
	}
	return n
}

// deadlineMissing: the Job must have been active for as long as it may.
func (j *judge) deadlineMissing(r *jobRecord) string {
	var shortest *int64
	for _, job := range j.recent(r) {
		if d := job.Spec.ActiveDeadlineSeconds; d != nil && (shortest == nil || *d < *shortest) {
			shortest = d
		}
	}
	if shortest == nil {
		return "the Job has no deadline"
	}
	if j.always(r, suspended) {
		return "the Job is suspended"
	}
	start := r.job.Status.StartTime
	if start == nil {
		if *shortest == 0 {
			return ""
		}
		return "the Job has no start time"
	}
	active := j.now.Add(j.askew()).Sub(start.Time)
	if active.Seconds() < float64(*shortest) { // A Duration holds 292 years only.
		return sprint("the Job was active for %s of %d s", active, *shortest)
	}
	return ""
}

// tooManyMissing: more of these indexes must have failed than may.
func tooManyMissing(job *batchv1.Job, failed indexset.Set) string {
	if most := job.Spec.MaxFailedIndexes; most == nil || failed.Len() <= int64(*most) {
		return sprint("%d indexes have failed of %d that may", failed.Len(), valueOr(most, valueOr(job.Spec.Completions, 0)))
	}
	return ""
}

func failedIndexesMissing(next *batchv1.Job) string {
	failed, completed := failedIndexes(&next.Status), completedIndexes(&next.Status)
	if n := int64(valueOr(next.Spec.Completions, 0)); failed.Empty() || failed.Union(completed).Len() < n {
		return sprint("%d indexes have failed and %d are completed of %d", failed.Len(), completed.Len(), n)
	}
	return ""
}

package explain

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
)

// notes lists what is often misunderstood, if it applies to this Job now.
func (w *work) notes() {
	restarts, _ := w.restarts(false)
	cron, byHand, over := cronOwner(w.Job), !wire.IsRun(w.Job), w.State == Complete || w.State == Failed
	for _, n := range []struct {
		applies bool
		topic   string
		text    string
	}{
		{
			restarts > 0 || (w.onFailure() && w.failedBy(batchv1.JobReasonBackoffLimitExceeded)), "restarts",
			"With restartPolicy OnFailure, container restarts count toward backoffLimit, also those of init containers and sidecars. When it is exceeded, the pod is " + w.fate() + ".",
		},
		{
			w.failedBy(batchv1.JobReasonBackoffLimitExceeded) && w.Job.Status.Failed > ptr.Deref(w.Job.Spec.BackoffLimit, 6)+1, "backoffLimit",
			"status.failed may be above backoffLimit: pods that run when the limit is exceeded are ended, and count as failed.",
		},
		{
			w.Counts.Failed > 0 && w.State != Failed && w.State != Failing, "status.failed",
			"status.failed counts pods. It is no verdict: the Job has failed only when the condition Failed is true.",
		},
		{
			w.ignores() && w.Counts.Failed == 0 && w.lastFailed() != nil, "status.failed",
			"Failures that the pod failure policy ignores do not count in status.failed.",
		},
		{
			w.Job.Spec.ActiveDeadlineSeconds != nil && (w.State == Suspended || wasSuspended(w.Job)), "activeDeadlineSeconds",
			"The deadline counts from status.startTime, which begins anew each time the Job is resumed.",
		},
		{
			w.notStarted > 0 && (w.uncounted || w.recorded) && w.Job.Spec.ActiveDeadlineSeconds == nil, "pods that never start",
			"A pod that never starts is active, not failed: backoffLimit does not end the Job. activeDeadlineSeconds would, and can be set now.",
		},
		{
			w.Counts.Terminating > 0 && w.Counts.Active > 0 && wire.PodReplacementPolicy(w.Job) == batchv1.TerminatingOrFailed &&
				w.Job.Spec.PodFailurePolicy == nil && w.State != Failing && w.State != Completing, "two pods at once",
			"A pod that is being deleted is replaced at once, so two may run for the same work. podReplacementPolicy: Failed waits until the first has ended.",
		},
		{
			over && len(w.Job.Status.Conditions) > 1, "conditions",
			"status.conditions has more than one entry since Kubernetes v1.31: look for the type Complete or Failed, not for the first one.",
		},
		{
			over && w.Job.Spec.TTLSecondsAfterFinished != nil, "ttlSecondsAfterFinished",
			"spec.ttlSecondsAfterFinished applies to complete and failed Jobs alike; under jobpolicy the options job.ttlSecondsAfterComplete and job.ttlSecondsAfterFailed (annotation " + wire.Policy +
				") override it, each for one outcome. The pods and their logs are deleted with the Job. The controller counts the time by its own clock, from when the condition became true.",
		},
		{
			over && cron != "", "history limits",
			"The Job belongs to the CronJob " + cron + ", which deletes it when newer runs have ended and its history limits ask for that.",
		},
		{
			w.unfinished() && cron != "" && byHand, "concurrencyPolicy",
			"Somebody created the Job from the CronJob " + cron + ". Its concurrencyPolicy does not count it: runs start beside it, and none deletes it. An event UnexpectedJob on the CronJob means this Job, and no fault.",
		},
		{
			w.unfinished() && cron != "" && !byHand, "concurrencyPolicy",
			"The Job is a run of the CronJob " + cron + ". If its concurrencyPolicy is Replace, the next run deletes this one.",
		},
		{
			w.State == BackingOff && builtin(w.Job), "retry delay",
			"The built-in controller keeps the delay in memory: after it was restarted it may try again earlier than said here.",
		},
		{w.State == Unmanaged && !builtin(w.Job), "managedBy", "A Job whose managedBy names a controller that is not installed is left alone by all others, without an event."},
	} {
		if n.applies {
			w.Report.Notes = append(w.Report.Notes, Note{n.topic, n.text})
		}
	}
	if s := w.oneOpenSidecar(); s != "" {
		w.Report.Notes = append(w.Report.Notes, Note{"sidecars", fmt.Sprintf("A Job is open until every container of its pods has ended. %s", s)})
	}
}

// notesOnEnd lists what is often misunderstood of a Job that is over, beyond its status.
func (w *work) notesOnEnd() {
	over := w.State == Complete || w.State == Failed
	if named := namedCronJob(w.Job); over && cronOwner(w.Job) == "" && named != "" {
		w.Report.Notes = append(w.Report.Notes, Note{"history limits", "The Job names the CronJob " + named +
			" as an owner, but not as its controller, as some tools do that create Jobs by hand. Its history limits neither count nor delete it: it goes when the CronJob is deleted."})
	}
	if claim := w.claimInUse(); over && claim != "" {
		w.Report.Notes = append(w.Report.Notes, Note{"persistent volume claims", "Pods that have ended still use their claims: if " + claim +
			" is deleted, it stays (finalizer kubernetes.io/pvc-protection) until the Job's pods are deleted, by hand, with the Job, or by ttlSecondsAfterFinished."})
	}
	if w.deadlinePassed() && !w.endsPods() {
		w.Report.Notes = append(w.Report.Notes, Note{"logs", "When a Job fails, its active pods are deleted, and their logs with them. Under jobpolicy, job.whenJobFails: EndPods (annotation " + wire.Policy +
			") ends them, and they stay."})
	}
}

// claimInUse names a persistent volume claim of a pod that has ended; empty if there is none.
func (w *work) claimInUse() string {
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		for _, v := range p.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				return v.PersistentVolumeClaim.ClaimName
			case v.Ephemeral != nil:
				return p.Name + "-" + v.Name
			}
		}
	}
	return ""
}

// unfinished reports whether the Job may still be deleted because a newer run begins.
func (w *work) unfinished() bool {
	return w.State != Complete && w.State != Failed && w.State != Deleting
}

// cronOwner is the CronJob that controls the Job; empty if none does.
func cronOwner(job *batchv1.Job) string {
	if owner := wire.ControllerOf(job, wire.CronJobKind.GroupKind()); owner != nil {
		return owner.Name
	}
	return ""
}

// namedCronJob is a CronJob among the Job's owners, its controller or not.
func namedCronJob(job *batchv1.Job) string {
	for _, owner := range job.OwnerReferences {
		if owner.Kind == wire.CronJobKind.Kind && strings.HasPrefix(owner.APIVersion, wire.CronJobKind.Group+"/") {
			return owner.Name
		}
	}
	return ""
}

// deadlinePassed reports whether the Job failed, or fails, because of its deadline.
func (w *work) deadlinePassed() bool {
	c := jobCondition(w.Job, batchv1.JobFailureTarget)
	return w.failedBy(batchv1.JobReasonDeadlineExceeded) || c != nil && c.Reason == batchv1.JobReasonDeadlineExceeded
}

func (w *work) failedBy(reason string) bool {
	c := jobCondition(w.Job, batchv1.JobFailed)
	return c != nil && c.Reason == reason
}

func (w *work) ignores() bool {
	policy := w.Job.Spec.PodFailurePolicy
	return policy != nil && slices.ContainsFunc(policy.Rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.Action == batchv1.PodFailurePolicyActionIgnore
	})
}

func wasSuspended(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobSuspended })
}

func (w *work) oneOpenSidecar() string {
	for _, p := range w.Report.Pods {
		if p.Kind == "sidecar" {
			return "In pod " + p.Pod + ", " + p.Why + "."
		}
	}
	return ""
}

package explain

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// How the work of an executor is known.
const (
	// managedByDefault is the default of its --managed-by.
	managedByDefault = "jobpolicy.dev/executor"
	// fieldManager is the name that the API server records for its writes.
	fieldManager = "jobpolicy-executor"
	// invalidPolicy is the reason of an event that no other controller has.
	invalidPolicy = "InvalidPolicy"
)

// longestRefusal is the longest delay after the API server has refused pods, here and with the built-in controller.
const longestRefusal = time.Minute

// slack is what a try and its event may take beside the delay.
const slack = 5 * time.Second

// TakesOptions reports whether the Job can have options: jobpolicy reads them, and nobody else. It runs the Jobs
// whose spec.managedBy has the default name of an executor, and those that an executor has acted on: under
// another name, or in place of the built-in controller (--replace-builtin).
func TakesOptions(f Facts) bool {
	return f.Job.Spec.ManagedBy != nil && *f.Job.Spec.ManagedBy == managedByDefault ||
		slices.ContainsFunc(f.Job.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == fieldManager && e.Subresource == "status"
		}) ||
		slices.ContainsFunc(f.Events, func(e corev1.Event) bool { return e.Reason == invalidPolicy })
}

// withoutOptions is the Job without the options that its annotations ask for.
func withoutOptions(job *batchv1.Job) *batchv1.Job {
	out := *job
	out.Annotations = maps.Clone(job.Annotations)
	delete(out.Annotations, wire.Policy)
	return &out
}

// noteOnOptions says so if options are left out.
func (w *work) noteOnOptions() {
	if w.optionsLeftOut {
		w.Report.Notes = append(w.Report.Notes, Note{
			"annotations",
			"Only jobpolicy reads the options under jobpolicy.dev/. The built-in controller does not know them. Nothing shows that jobpolicy runs this Job (spec.managedBy), so they are left out here.",
		})
	}
}

// ownRetryDelay reports whether the Job may have a retry delay of its own: its options have one, or cannot be
// read here.
func (w *work) ownRetryDelay() bool {
	policy, problems := wire.PolicySpec(w.Job.Annotations)
	return len(problems) > 0 || options.DelaysRetries(policy.GetJob().GetRetryDelay())
}

// fate is what becomes of a pod that is active when the Job fails.
func (w *work) fate() string {
	if w.endsPods() {
		return "ended and stays, with its log (job.whenJobFails)"
	}
	return "deleted and its log with it; with restartPolicy Never the failed pods stay"
}

// endsPods reports whether the Job's active pods are ended when it fails, and stay.
func (w *work) endsPods() bool {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	return policy.GetJob().GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS
}

// quotaDelay is the longest delay after a quota refused pods. own: the Job's options made it shorter.
func (w *work) quotaDelay() (longest time.Duration, own bool) {
	policy, _ := wire.PolicySpec(w.Job.Annotations)
	if asked := time.Duration(policy.GetJob().GetRetryDelay().GetQuotaMaxSeconds()) * time.Second; asked > 0 && asked < longestRefusal {
		return asked, true
	}
	return longestRefusal, false
}

// adviseOnQuota says when pods that a quota refused are tried again, and what makes that sooner. Options that cannot be
// read may have done so already.
func (w *work) adviseOnQuota() {
	longest, own := w.quotaDelay()
	why := "."
	switch _, problems := wire.PolicySpec(w.Job.Annotations); {
	case own:
		why = " (job.retryDelay.quotaMaxSeconds of its JobPolicy)."
	case len(problems) == 0 && TakesOptions(w.Facts):
		why = "; job.retryDelay.quotaMaxSeconds of a JobPolicy makes that shorter."
	}
	w.advise("The Job tries again at most %s after each refusal%s", simulate.Clock(longest), why)
}

// lastTry says when a refused creation of pods was last tried. Of many refusals only some are told as events: if the
// last event is older than any delay, there were later tries.
func (w *work) lastTry(r *writes.Refusal) string {
	longest := longestRefusal
	if writes.ExceedsQuota(r.Why) && r.Kind == writes.CreatePod {
		longest, _ = w.quotaDelay()
	}
	if !w.recorded && w.Now.Sub(r.Last) > longest+slack {
		return "Last told " + w.ago(r.Last) + "; not each try is told"
	}
	return "Last tried " + w.ago(r.Last)
}

package world

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/services/explain"
)

// Facts in objects that a report must not contradict, as they are counted.
const (
	factDeleting = "deletion was requested"
	factReason   = "a pod has a reason of its own"
	factRestarts = "restarts used up the limit"
	factByHand   = "a Job was created by hand"
)

// contradictions compares a report with the Job's and pods' own words. seen counts the facts.
func contradictions(f explain.Facts, r *explain.Report, seen map[string]int) (wrong []string) {
	check := func(right bool, format string, args ...any) {
		if !right {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	deleting, change := f.Job.DeletionTimestamp != nil, strings.Join(r.Change, "\n")
	check(deleting == (r.State == explain.Deleting), "deletion requested: %v", deleting)
	if deleting {
		seen[factDeleting]++
		check(r.Retries == "" && len(r.Ends) == 0, "its deletion was requested, and it has retries %q and ends %q", r.Retries, r.Ends)
		for _, finalizer := range f.Job.Finalizers {
			check(strings.Contains(r.Headline, finalizer) && strings.Contains(change, finalizer), "nothing tells of the finalizer %s", finalizer)
		}
		return wrong
	}
	for _, p := range r.Pods {
		i := slices.IndexFunc(f.Pods, func(pod corev1.Pod) bool { return pod.Name == p.Pod })
		reason := f.Pods[i].Status.Reason
		if p.Kind != "failed" || reason == "" {
			continue
		}
		seen[factReason]++
		first, code := strings.Index(p.Why, reason), strings.Index(p.Why, "exit code")
		check(first >= 0 && (code < 0 || first < code), "pod %s has the reason %s, and failed because: %s", p.Pod, reason, p.Why)
	}
	limit, onFailure := valueOr(f.Job.Spec.BackoffLimit, 6), f.Job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	exceeded := slices.ContainsFunc(f.Job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Reason == batchv1.JobReasonBackoffLimitExceeded })
	if onFailure && exceeded && r.Counts.Failed <= limit {
		seen[factRestarts]++
		check(strings.Contains(change, "Restarts used up"), "%d pods failed of %d that may, and it says: %s", r.Counts.Failed, limit, change)
	}
	return wrong
}

// cronContradictions does the same for a CronJob.
func cronContradictions(f explain.CronFacts, r *explain.CronReport, seen map[string]int) (wrong []string) {
	if deleting := f.CronJob.DeletionTimestamp != nil; deleting != (r.State == explain.Deleting) {
		wrong = append(wrong, fmt.Sprintf("deletion requested: %v", deleting))
	}
	for i := range f.Jobs {
		job := &f.Jobs[i]
		if cronOf(job) != f.CronJob.UID || finished(job) != "" {
			continue
		}
		run := isRun(&jobRecord{job: job}) || slices.ContainsFunc(f.CronJob.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
		named := func(runs []explain.ActiveRun) bool {
			return slices.ContainsFunc(runs, func(run explain.ActiveRun) bool { return run.Job == job.Name })
		}
		if !run {
			seen[factByHand]++
		}
		if named(r.Active) != run || named(r.ByHand) == run {
			wrong = append(wrong, fmt.Sprintf("Job %s is a run: %v, and the active runs are %v, those by hand %v", job.Name, run, r.Active, r.ByHand))
		}
	}
	return wrong
}

package podjob

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// status judges a status that was stored. seen is what its Step had read.
func (j *judge) status(g *group, seen *view, old, status *batchv1.JobStatus) {
	lists := uncounted(status)
	j.notef("status of %s: active %d, succeeded %d %v, failed %d %v, indexes %q %q, conditions %v", g.name, status.Active,
		status.Succeeded, lists.Succeeded, status.Failed, lists.Failed, status.CompletedIndexes, deref(status.FailedIndexes), conditionsOf(status))
	if apiequality.Semantic.DeepEqual(old, status) {
		j.breach("I11", "the status of group %s was written, and nothing in it is new", g.name)
	}
	j.judgeCounted(g, old, status)
	j.judgeRecorded(g, seen, old, status)
	j.judgeIndexes(g, seen, old, status)
	j.judgeConditions(g, old, status)
}

func conditionsOf(status *batchv1.JobStatus) (list []batchv1.JobConditionType) {
	for _, c := range status.Conditions {
		if c.Status == corev1.ConditionTrue {
			list = append(list, c.Type)
		}
	}
	return list
}

// judgeCounted checks I2: a counter grows by exactly the pods that leave its list, each of
// them has lost its finalizer, and none was counted before.
func (j *judge) judgeCounted(g *group, old, status *batchv1.JobStatus) {
	left := func(before, after []types.UID, name string) (n int32) {
		for _, uid := range before {
			if slices.Contains(after, uid) {
				continue
			}
			n++
			r := j.pods[uid]
			switch {
			case r == nil: // judgeRecorded has said so.
			case r.counted:
				j.breach("I2", "pod %s is counted a second time", r.Name)
			case !r.gone && !r.left && tracked(r.Pod):
				j.breach("I2", "pod %s is counted as %s, and it still has its finalizer", r.Name, name)
			default:
				r.counted = true
			}
		}
		return n
	}
	before, after := uncounted(old), uncounted(status)
	failed, succeeded := left(before.Failed, after.Failed, "failed"), left(before.Succeeded, after.Succeeded, "succeeded")
	if grown := status.Failed - old.Failed; grown != failed {
		j.breach("I2", "status.failed of group %s grows by %d, and %d pods leave the list of failed ones", g.name, grown, failed)
	}
	if grown := status.Succeeded - old.Succeeded; !isIndexed(&g.job.Spec) && grown != succeeded {
		j.breach("I2", "status.succeeded of group %s grows by %d, and %d pods leave the list of succeeded ones", g.name, grown, succeeded)
	}
}

// judgeRecorded checks I3, and that only pods are recorded that have ended, as what they were.
func (j *judge) judgeRecorded(g *group, seen *view, old, status *batchv1.JobStatus) {
	record := func(before, after []types.UID, as string) {
		for i, uid := range after {
			if slices.Contains(after[:i], uid) {
				j.breach("I3", "the list of %s pods of group %s has %s twice", as, g.name, uid)
			}
			r := j.pods[uid]
			switch {
			case r == nil || r.group != g:
				j.breach("I3", "group %s records %s, which is none of its pods", g.name, uid)
			case r.as != "" && (r.as != as || !slices.Contains(before, uid)):
				j.breach("I3", "pod %s is recorded as %s, and it was recorded as %s before", r.Name, as, r.as)
			case r.as == "":
				j.judgeEnd(r, seen, status, as)
				r.as, r.loss = as, ""
			}
		}
	}
	before, after := uncounted(old), uncounted(status)
	record(before.Failed, after.Failed, "failed")
	record(before.Succeeded, after.Succeeded, "succeeded")
}

// judgeEnd judges what a pod is recorded as.
func (j *judge) judgeEnd(r *record, seen *view, status *batchv1.JobStatus, as string) {
	var pod *corev1.Pod
	for i := range seen.pods {
		if seen.pods[i].UID == r.UID {
			pod = &seen.pods[i]
		}
	}
	switch {
	case pod == nil:
		j.breach("I3", "pod %s is recorded, and the Step had not read it", r.Name)
	case (pod.Status.Phase == corev1.PodSucceeded) != (as == "succeeded"):
		j.breach("I3", "pod %s is recorded as %s, and its phase is %s", r.Name, as, pod.Status.Phase)
	case !ended(pod) && pod.DeletionTimestamp == nil && condition(status, batchv1.JobFailureTarget) == "":
		j.breach("I3", "pod %s is recorded as %s, and it still runs", r.Name, as)
	}
}

// judgeIndexes checks that an Indexed group counts the indexes that have succeeded, and forgets none.
func (j *judge) judgeIndexes(g *group, seen *view, old, status *batchv1.JobStatus) {
	if !isIndexed(&g.job.Spec) {
		return
	}
	before, after := parse(old.CompletedIndexes), parse(status.CompletedIndexes)
	for ix := range after.Minus(before).All {
		if !slices.ContainsFunc(seen.pods, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded && number(p.Annotations[batchv1.JobCompletionIndexAnnotation]) == ix
		}) {
			j.breach("I2", "group %s records index %d as completed, and no pod of it has succeeded", g.name, ix)
		}
	}
	for ix := range before.Minus(after).All {
		if ix < *seen.job.Spec.Completions {
			j.breach("I2", "group %s forgets that index %d has completed", g.name, ix)
		}
	}
	if elastic := *seen.job.Spec.Completions == *seen.job.Spec.Parallelism; int64(status.Succeeded) != after.Len() && elastic {
		j.breach("I2", "status.succeeded of group %s is %d, and the completed indexes are %q", g.name, status.Succeeded, status.CompletedIndexes)
	}
	if !parse(deref(status.FailedIndexes)).Intersect(after).Empty() {
		j.breach("I3", "an index of group %s is both completed and failed: %q and %q", g.name, status.CompletedIndexes, deref(status.FailedIndexes))
	}
}

// judgeConditions checks I4.
func (j *judge) judgeConditions(g *group, old, status *batchv1.JobStatus) {
	if interim := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget}; condition(old, interim...) == "" && condition(status, interim...) != "" {
		g.decided = g.job.Spec.DeepCopy()
		j.judgeSuccess(g, status)
	}
	end := finished(status)
	if was := finished(old); was != "" {
		if end != was {
			j.breach("I4", "group %s was %s, and is %q now", g.name, was, end)
		}
		return
	}
	if end == "" {
		return
	}
	interim := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[end]
	if condition(old, interim) == "" {
		j.breach("I4", "group %s is %s, and no status before said %s", g.name, end, interim)
	}
	if end == batchv1.JobComplete && condition(status, batchv1.JobFailed) != "" {
		j.breach("I4", "group %s is both complete and failed", g.name)
	}
	if lists := uncounted(status); len(lists.Succeeded)+len(lists.Failed) > 0 {
		j.breach("I4", "group %s is %s, and pods are uncounted", g.name, end)
	}
	for _, r := range j.pods {
		if r.group == g && !r.gone && !r.left && (tracked(r.Pod) || active(r.Pod)) && !r.arrived.After(g.view.at) {
			j.breach("I4", "group %s is %s, and pod %s is active or has its finalizer", g.name, end, r.Name)
		}
	}
	if g.decided != nil {
		j.judgeVerdict(g, g.decided, status)
	}
}

// judgeSuccess checks that a group that is to complete has enough successes.
func (j *judge) judgeSuccess(g *group, status *batchv1.JobStatus) {
	n := status.Succeeded
	if !isIndexed(g.decided) {
		n += int32(len(uncounted(status).Succeeded))
	}
	if condition(status, batchv1.JobSuccessCriteriaMet) != "" && g.decided.Completions != nil && g.decided.SuccessPolicy == nil && n < *g.decided.Completions {
		j.breach("verdict", "group %s is to complete with %d successes, and wants %d", g.name, n, *g.decided.Completions)
	}
}

// judgeVerdict checks that a group failed as its spec said when that was decided.
func (j *judge) judgeVerdict(g *group, spec *batchv1.JobSpec, status *batchv1.JobStatus) {
	for _, c := range status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch {
		case c.Reason == batchv1.JobReasonBackoffLimitExceeded && (spec.BackoffLimit == nil || status.Failed <= *spec.BackoffLimit):
			j.breach("verdict", "group %s has failed at its backoff limit, and only %d pods have failed", g.name, status.Failed)
		case (c.Reason == batchv1.JobReasonFailedIndexes || c.Reason == batchv1.JobReasonMaxFailedIndexesExceeded) && deref(status.FailedIndexes) == "":
			j.breach("verdict", "group %s has failed by its failed indexes, and there is none", g.name)
		}
	}
}

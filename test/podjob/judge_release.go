package podjob

import (
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/indexset"
)

// judgeRelease checks I1: a status that accounts for the pod is stored before its finalizer is
// removed, or the pod need not be counted. seen is the pod in the view of the Step, old the stored one.
func (j *judge) judgeRelease(r *record, seen, old *corev1.Pod) {
	if r.released = j.why(r, seen, old); r.released != "" {
		j.came("a release: " + r.released)
		return
	}
	r.released = "?"
	state := "it ran"
	if ended(old) {
		state = "it had ended: " + string(old.Status.Phase)
	}
	j.breach("I1", "the controller took the finalizer of pod %s (%s), no stored status accounts for the pod, and nothing says that it need not be counted", r.Name, state)
}

const (
	byRecord     = "a status has recorded the pod"
	byIndex      = "a status has its index"
	ownerIsGone  = "its owner is gone"
	byFinish     = "its group is finished"
	bySuccess    = "its group has met its success criteria"
	notAsked     = "its group does not ask for its index"
	isIgnored    = "the pod failure policy ignores it"
	whileAway    = "its group is suspended"
	isSurplus    = "there are more pods than wanted"
	indexIsTaken = "its index has another pod or a result"
)

// why says why the controller may release the pod; empty: it may not.
func (j *judge) why(r *record, seen, old *corev1.Pod) string {
	status, v := &r.group.job.Status, r.group.view
	indexes := isIndexed(&v.job.Spec)
	switch {
	case j.removing && r.left:
		return ""
	case j.removing:
		return ownerIsGone
	case r.as != "":
		return byRecord
	case indexes && (seen.Status.Phase == corev1.PodSucceeded || old.Status.Phase == corev1.PodSucceeded) && (has(status.CompletedIndexes, r.index) || has(deref(status.FailedIndexes), r.index)):
		return byIndex
	case finished(status) != "":
		return byFinish
	case indexes && !asks(&v.job.Spec, r.index) && (ended(seen) || !r.left):
		return notAsked
	case condition(status, batchv1.JobSuccessCriteriaMet) != "" && (!ended(seen) || seen.Status.Phase == corev1.PodFailed):
		return bySuccess
	case ended(seen):
		if seen.Status.Phase == corev1.PodFailed && ignores(v.job.Spec.PodFailurePolicy, seen) {
			return isIgnored
		}
		return ""
	case seen.DeletionTimestamp != nil && ended(old) && ignores(v.job.Spec.PodFailurePolicy, old):
		return isIgnored
	case ended(old) || r.left:
		return "" // A pod that is to be counted if it ends is released only as it is stored now.
	case isSuspended(v.job):
		return whileAway
	case indexes && v.shares(r):
		return indexIsTaken
	case v.surplus():
		return isSurplus
	}
	return ""
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func has(set, index string) bool { return parse(set).Has(number(index)) }

func number(index string) int32 {
	n, err := strconv.ParseInt(index, 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

// parse reads a set of indexes, such as 0,2-4.
func parse(text string) indexset.Set {
	var ranges []indexset.Range
	for len(text) > 0 {
		var first, last int32
		part := text
		for i := range text {
			if text[i] == ',' {
				part = text[:i]
				break
			}
		}
		text = text[min(len(part)+1, len(text)):]
		if n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n == 1 {
			last = first
		}
		ranges = append(ranges, indexset.Range{First: first, Last: last})
	}
	set, _ := indexset.FromRanges(ranges)
	return set
}

func asks(spec *batchv1.JobSpec, index string) bool {
	n := number(index)
	return n >= 0 && spec.Completions != nil && n < *spec.Completions
}

// shares reports whether another pod of the view has the pod's index, or a result of the index is known.
func (v *view) shares(r *record) bool {
	if has(v.job.Status.CompletedIndexes, r.index) || has(deref(v.job.Status.FailedIndexes), r.index) {
		return true
	}
	return slices.ContainsFunc(v.pods, func(p corev1.Pod) bool {
		return p.UID != r.UID && p.Annotations[batchv1.JobCompletionIndexAnnotation] == r.index && (active(&p) || p.Status.Phase == corev1.PodSucceeded)
	})
}

// surplus reports whether more pods run in the view than the group wants.
func (v *view) surplus() bool {
	running, done := 0, v.succeeded()
	for i := range v.pods {
		if !ended(&v.pods[i]) {
			running++ // One that is being deleted may still count as one that runs.
		}
	}
	want := int(*v.job.Spec.Parallelism)
	if v.job.Spec.Completions != nil {
		want = min(want, max(0, int(*v.job.Spec.Completions)-done))
	}
	return running > want
}

// succeeded is how many pods or indexes have succeeded in the view.
func (v *view) succeeded() int {
	status := &v.job.Status
	done := parse(status.CompletedIndexes)
	n := int(status.Succeeded) + len(uncounted(status).Succeeded)
	for _, p := range v.pods {
		if p.Status.Phase != corev1.PodSucceeded || !tracked(&p) || slices.Contains(uncounted(status).Succeeded, p.UID) {
			continue
		}
		n++
		done = done.Union(indexset.Of(number(p.Annotations[batchv1.JobCompletionIndexAnnotation])))
	}
	if isIndexed(&v.job.Spec) {
		return int(done.Len())
	}
	return n
}

// ignores reports whether the policy ignores the failure of a pod: the first rule that matches decides.
func ignores(policy *batchv1.PodFailurePolicy, pod *corev1.Pod) bool {
	if policy == nil {
		return false
	}
	for _, rule := range policy.Rules {
		matches := slices.ContainsFunc(rule.OnPodConditions, func(want batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == want.Type && c.Status == want.Status })
		})
		if want := rule.OnExitCodes; want != nil {
			matches = slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.State.Terminated != nil && slices.Contains(want.Values, s.State.Terminated.ExitCode)
			})
		}
		if matches {
			return rule.Action == batchv1.PodFailurePolicyActionIgnore
		}
	}
	return false
}

func uncounted(status *batchv1.JobStatus) batchv1.UncountedTerminatedPods {
	if status.UncountedTerminatedPods == nil {
		return batchv1.UncountedTerminatedPods{}
	}
	return *status.UncountedTerminatedPods
}

package ledger

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TooMany checks I6 of a Job whose size does not change: never were more pods of a Job active than it asked for, even
// if all pods that ended had succeeded, and no index had two.
func (h *History) TooMany(job *batchv1.Job) []string {
	var problems []string
	var steps []activity
	for _, life := range h.podsOf(job.UID) {
		steps = append(steps, activityOf(life)...)
	}
	slices.SortFunc(steps, func(a, b activity) int { return cmp.Compare(a.rv, b.rv) })
	active, succeeded := map[types.UID]bool{}, int32(0)
	busy := map[string]types.UID{}
	for _, step := range steps {
		index := indexOf(step.pod)
		switch {
		case step.active:
			if other, taken := busy[index]; taken && IsIndexed(job) {
				problems = append(problems, fmt.Sprintf("Job %s: index %s had pods %s and %s at the same time, or after it succeeded", job.Name, index, other, step.pod.UID))
			}
			active[step.pod.UID], busy[index] = true, step.pod.UID
		case step.pod.Status.Phase == corev1.PodSucceeded:
			succeeded++
			delete(active, step.pod.UID)
		default:
			delete(active, step.pod.UID)
			delete(busy, index)
		}
		most := int32(len(active))
		if job.Spec.Completions != nil && most+succeeded > *job.Spec.Completions || most > *job.Spec.Parallelism {
			return append(problems, fmt.Sprintf("Job %s: %d pods were active, and %d had succeeded", job.Name, most, succeeded))
		}
	}
	return problems
}

// An activity is the moment in which a pod begins or ceases to be active.
type activity struct {
	rv     uint64
	pod    *corev1.Pod
	active bool
}

func activityOf(life *podLife) []activity {
	first := life.versions[0]
	steps := []activity{{version(first), first, true}}
	for _, pod := range life.versions {
		if Ended(pod) || pod.DeletionTimestamp != nil {
			return append(steps, activity{version(pod), pod, false})
		}
	}
	return append(steps, activity{life.gone, first, false})
}

func describeLife(life *podLife) string {
	pod := life.last()
	return fmt.Sprintf("%s (%s, deleted %v)", pod.Name, pod.Status.Phase, pod.DeletionTimestamp != nil)
}

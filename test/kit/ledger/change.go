package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/indexset"
)

// A change is one write of a Job's status or of a pod: what was stored before it and after it.
type change struct {
	book *Book
	// controller: it is known that a controller of Jobs wrote it. Nobody else has to keep to the steps of pods.
	controller bool

	// wasJob and job are the versions of a Job; nil if the write is of a pod. was and is say in which list each
	// UID stands. counted are the pods that the Job's statuses have counted before.
	wasJob, job *batchv1.Job
	was, is     map[types.UID]string
	counted     map[types.UID]bool

	// wasPod and pod are the versions of a pod; nil: it did not exist, or is gone.
	wasPod, pod *corev1.Pod
}

// A finding is where a guard does not hold.
type finding struct {
	pod    types.UID
	detail string
}

func found(pod types.UID, format string, args ...any) []finding {
	return []finding{{pod, fmt.Sprintf(format, args...)}}
}

// What steps a status takes.

func (c *change) turns(kinds ...batchv1.JobConditionType) bool {
	return slices.ContainsFunc(kinds, func(kind batchv1.JobConditionType) bool { return IsTrue(c.job, kind) && !IsTrue(c.wasJob, kind) })
}

func (c *change) declares() bool {
	return c.turns(batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget)
}

func (c *change) finishes() bool { return c.turns(batchv1.JobComplete, batchv1.JobFailed) }

func (c *change) records() bool { return len(missing(c.is, c.was)) > 0 }

func (c *change) counts() bool { return len(missing(c.was, c.is)) > 0 }

// missing are the UIDs of one status that another does not list, sorted.
func missing(of, in map[types.UID]string) (uids []types.UID) {
	for _, uid := range slices.Sorted(maps.Keys(of)) {
		if in[uid] == "" {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (c *change) completesIndexes() bool {
	return IsIndexed(c.job) && !Indexes(c.job.Status.CompletedIndexes).Minus(Indexes(c.wasJob.Status.CompletedIndexes)).Empty()
}

// What steps a write of a pod takes.

// releases reports whether the finalizer goes. If a deleted pod waits only for that, its end is its release.
func (c *change) releases() bool {
	return c.wasPod != nil && Held(c.wasPod) && (c.pod == nil || !Held(c.pod))
}

// last is the pod as the write leaves it.
func (c *change) last() *corev1.Pod {
	if c.pod == nil {
		return c.wasPod
	}
	return c.pod
}

// owner is the stored Job that controlled the pod before the write; nil if there is none.
func (c *change) owner() *batchv1.Job {
	a := c.book.jobs[controllerOf(c.wasPod)]
	if a == nil || !controls(a.job, c.wasPod) {
		return nil
	}
	return a.job
}

func (c *change) releasesEnded() bool {
	return c.releases() && c.owner() != nil && Ended(c.last())
}

func (c *change) releasesRunning() bool { return c.releases() && c.owner() != nil && !Ended(c.last()) }

func (c *change) releasesOrphan() bool { return c.releases() && c.owner() == nil }

func (c *change) adopts() bool {
	return c.wasPod != nil && c.pod != nil && controllerOf(c.pod) != "" && controllerOf(c.pod) != controllerOf(c.wasPod)
}

// disowns reports whether a Job gives up a pod that its selector does not match any more. The model has no selectors.
func (c *change) disowns() bool {
	return c.wasPod != nil && c.pod != nil && controllerOf(c.wasPod) != "" && controllerOf(c.pod) == ""
}

// tellsToEnd reports whether a node is told to end a pod of a Job that fails (options.when_job_fails). The model
// has no option: such a pod ends as any other.
func (c *change) tellsToEnd() bool {
	if c.wasPod == nil || c.pod == nil || c.owner() == nil || !IsTrue(c.owner(), batchv1.JobFailureTarget) {
		return false
	}
	had, has := c.wasPod.Spec.ActiveDeadlineSeconds, c.pod.Spec.ActiveDeadlineSeconds
	return has != nil && (had == nil || *has < *had)
}

func (c *change) creates() bool { return c.wasPod == nil && c.pod != nil }

func (c *change) deletes() bool {
	return c.wasPod != nil && c.wasPod.DeletionTimestamp == nil && (c.pod == nil || c.pod.DeletionTimestamp != nil)
}

// unexplained: what a write changes, one of its steps changes. A Job that asks for fewer indexes than before loses the others.
func (c *change) unexplained() []finding {
	rows, may := ofStatus, slices.Clone(beside)
	if c.job == nil {
		rows, may = ofPod, nil
		if c.disowns() {
			may = []string{"owner", "finalizer"}
		}
		if c.tellsToEnd() {
			may = append(may, "deadline")
		}
	} else if IsIndexed(c.job) && (c.wasJob.Generation != c.job.Generation || !c.lostIndexes().Empty()) {
		may = append(may, "completedIndexes", "succeeded")
	}
	for _, r := range rows {
		if r.effect(c) {
			may = append(may, r.parts...)
		}
	}
	var all []finding
	for _, part := range c.changedParts() {
		if !slices.Contains(may, part) {
			all = append(all, finding{c.podUID(), fmt.Sprintf("it changes %s", part)})
		}
	}
	return all
}

// lostIndexes are the completed indexes that a status does not list any more.
func (c *change) lostIndexes() indexset.Set {
	return Indexes(c.wasJob.Status.CompletedIndexes).Minus(Indexes(c.job.Status.CompletedIndexes))
}

func (c *change) podUID() types.UID {
	if c.job != nil {
		return ""
	}
	return c.last().UID
}

// changedParts are the parts of the object that a write changes. Of a pod that nobody is known to have written, only those that
// steps are about can be told.
func (c *change) changedParts() []string {
	if c.job != nil {
		return changedStatus(&c.wasJob.Status, &c.job.Status, len(missing(c.is, c.was))+len(missing(c.was, c.is)) > 0)
	}
	if !c.controller || c.wasPod == nil || c.pod == nil {
		return nil
	}
	return changedPod(c.wasPod, c.pod)
}

// changedStatus names the fields of a status that differ, conditions by their types.
func changedStatus(was, is *batchv1.JobStatus, lists bool) (parts []string) {
	before, after := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
	for i := range before.NumField() {
		if a, b := before.Field(i), after.Field(i); a.Comparable() && a.Equal(b) && before.Type().Field(i).Name != "UncountedTerminatedPods" {
			continue
		}
		name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
		switch {
		case name == "uncountedTerminatedPods":
			if lists {
				parts = append(parts, name)
			}
		case name == "conditions":
			parts = append(parts, changedConditions(was.Conditions, is.Conditions)...)
		case !equality.Semantic.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()):
			parts = append(parts, name)
		}
	}
	return parts
}

func changedConditions(was, is []batchv1.JobCondition) (parts []string) {
	for _, c := range is {
		if !slices.ContainsFunc(was, func(b batchv1.JobCondition) bool { return equality.Semantic.DeepEqual(b, c) }) {
			parts = append(parts, "conditions["+string(c.Type)+"]")
		}
	}
	return parts
}

// changedPod names what differs between two versions of a pod.
func changedPod(was, is *corev1.Pod) (parts []string) {
	if Held(was) != Held(is) {
		parts = append(parts, "finalizer")
	}
	if controllerOf(was) != controllerOf(is) {
		parts = append(parts, "owner")
	}
	if (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) {
		parts = append(parts, "deletion")
	}
	if !ptr.Equal(was.Spec.ActiveDeadlineSeconds, is.Spec.ActiveDeadlineSeconds) {
		parts = append(parts, "deadline")
	}
	before, after := was.DeepCopy(), is.DeepCopy()
	for _, pod := range []*corev1.Pod{before, after} {
		pod.ResourceVersion, pod.Generation, pod.ManagedFields, pod.OwnerReferences = "", 0, nil, nil
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Spec.ActiveDeadlineSeconds = nil, nil, nil
		pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	}
	if !equality.Semantic.DeepEqual(before, after) {
		parts = append(parts, "what no step is about")
	}
	return parts
}

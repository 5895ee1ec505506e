package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Problems says where a history breaks an invariant of ARCHITECTURE.md.
func (h *History) Problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var problems []string
	for uid, life := range h.jobs {
		var pods []*podLife
		for _, pod := range h.pods {
			if OwnedBy(pod.versions[0], uid) {
				pod.namespaceGone = h.namespaceGone
				pods = append(pods, pod)
			}
		}
		for _, problem := range brokenInJob(life, pods) {
			problems = append(problems, fmt.Sprintf("Job %s: %s", life.versions[0].Name, problem))
		}
	}
	return problems
}

// brokenInJob checks every version of one Job and of its pods.
func brokenInJob(life *jobLife, pods []*podLife) []string {
	var problems []string
	counted := map[types.UID]bool{}
	for i, job := range life.versions {
		previous := &batchv1.Job{}
		if i > 0 {
			previous = life.versions[i-1]
		}
		for _, problem := range slices.Concat(brokenCounts(previous, job), brokenConditions(previous, job), brokenLedger(previous, job, pods, counted), brokenEnd(previous, job, pods)) {
			problems = append(problems, fmt.Sprintf("%s; was %s; is %s", problem, Describe(previous), Describe(job)))
		}
	}
	for _, pod := range pods {
		problems = append(problems, brokenRelease(life, pod)...)
	}
	return problems
}

// brokenCounts: counters grow, and ready pods are active.
func brokenCounts(previous, job *batchv1.Job) []string {
	var problems []string
	s, old := job.Status, previous.Status
	if ptr.Deref(s.Ready, 0) > s.Active {
		problems = append(problems, "more pods are ready than active")
	}
	if s.Failed < old.Failed {
		problems = append(problems, "failed fell")
	}
	if s.Succeeded < old.Succeeded && !isIndexed(job) {
		problems = append(problems, "succeeded fell")
	}
	return problems
}

// brokenConditions: none goes away; the terminal one follows its interim one
// and excludes the other (I4).
func brokenConditions(previous, job *batchv1.Job) []string {
	var problems []string
	for _, had := range previous.Status.Conditions {
		kept := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == had.Type })
		final := had.Type != batchv1.JobSuspended && had.Status == corev1.ConditionTrue
		if !kept || (final && !IsTrue(job, had.Type)) {
			problems = append(problems, fmt.Sprintf("condition %s went away", had.Type))
		}
	}
	if IsTrue(job, batchv1.JobComplete) && IsTrue(job, batchv1.JobFailed) {
		problems = append(problems, "both Complete and Failed")
	}
	for terminal, interim := range map[batchv1.JobConditionType]batchv1.JobConditionType{
		batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget,
	} {
		if IsTrue(job, terminal) && !IsTrue(previous, interim) {
			problems = append(problems, fmt.Sprintf("%s without %s before it", terminal, interim))
		}
	}
	return problems
}

// brokenLedger: a UID is recorded once, in one list (I3). It leaves the list for the
// counter after its finalizer is gone (I2), or when the pod no longer belongs to the
// Job.
func brokenLedger(previous, job *batchv1.Job, pods []*podLife, counted map[types.UID]bool) []string {
	var problems []string
	before, now := uncounted(previous), uncounted(job)
	for uid, list := range now {
		if strings.Contains(list, "+") || (before[uid] != "" && before[uid] != list) {
			problems = append(problems, fmt.Sprintf("pod %s is recorded twice: %s, before %q", uid, list, before[uid]))
		}
		if counted[uid] {
			problems = append(problems, fmt.Sprintf("pod %s is recorded again after it was counted", uid))
		}
	}
	moved := map[string]int32{}
	for uid, list := range before {
		if now[uid] != "" {
			continue
		}
		moved[list]++
		counted[uid] = true
		if pod := podAt(pods, uid, version(job)); pod != nil && Held(pod) && OwnedBy(pod, job.UID) {
			problems = append(problems, fmt.Sprintf("pod %s is counted and holds the finalizer", uid))
		}
	}
	if grown := job.Status.Failed - previous.Status.Failed; grown != moved["failed"] {
		problems = append(problems, fmt.Sprintf("failed grew by %d, and %d pods left the list", grown, moved["failed"]))
	}
	if grown := job.Status.Succeeded - previous.Status.Succeeded; !isIndexed(job) && grown != moved["succeeded"] {
		problems = append(problems, fmt.Sprintf("succeeded grew by %d, and %d pods left the list", grown, moved["succeeded"]))
	}
	return problems
}

// uncounted says in which list each UID stands.
func uncounted(job *batchv1.Job) map[types.UID]string {
	lists := map[types.UID]string{}
	if job.Status.UncountedTerminatedPods == nil {
		return lists
	}
	for _, uid := range job.Status.UncountedTerminatedPods.Succeeded {
		lists[uid] = "succeeded"
	}
	for _, uid := range job.Status.UncountedTerminatedPods.Failed {
		if lists[uid] != "" {
			lists[uid] += "+"
		}
		lists[uid] += "failed"
	}
	return lists
}

func podAt(pods []*podLife, uid types.UID, rv uint64) *corev1.Pod {
	for _, pod := range pods {
		if pod.versions[0].UID == uid {
			return pod.before(rv)
		}
	}
	return nil
}

// brokenEnd: when a Job is finished, its pods have ended, and are released and counted.
func brokenEnd(previous, job *batchv1.Job, pods []*podLife) []string {
	if !IsFinished(job) || IsFinished(previous) {
		return nil
	}
	var problems []string
	s := job.Status
	if s.Active != 0 || ptr.Deref(s.Ready, 0) != 0 || ptr.Deref(s.Terminating, 0) != 0 || len(uncounted(job)) != 0 {
		problems = append(problems, "finished with pods that are active, terminating or uncounted")
	}
	for _, life := range pods {
		pod := life.before(version(job))
		if pod != nil && (Held(pod) || !Ended(pod)) {
			problems = append(problems, fmt.Sprintf("finished while pod %s is %s with finalizers %v", pod.Name, pod.Status.Phase, pod.Finalizers))
		}
	}
	return problems
}

// brokenRelease: an ended pod is released only after the Job's status accounts for it
// (I1). Exceptions are failures that a policy may ignore, pods that are deleted
// because the Job has succeeded without them, and pods that are deleted with their namespace.
func brokenRelease(life *jobLife, pod *podLife) []string {
	at, released := pod.release()
	if at == 0 || !Ended(released) {
		return nil
	}
	job := life.before(at)
	if job == nil || job.DeletionTimestamp != nil || IsFinished(job) {
		return nil
	}
	if _, recorded := uncounted(job)[released.UID]; recorded || completedIndex(job, released) {
		return nil
	}
	if released.Status.Phase == corev1.PodFailed && job.Spec.PodFailurePolicy != nil {
		return nil
	}
	if released.DeletionTimestamp != nil && IsTrue(job, batchv1.JobSuccessCriteriaMet) {
		return nil
	}
	if goes := pod.namespaceGone; !goes.IsZero() && released.DeletionTimestamp != nil && !released.DeletionTimestamp.Time.Before(goes.Truncate(time.Second)) {
		return nil
	}
	return []string{fmt.Sprintf("pod %s (%s) was released before the status accounts for it: %s", released.Name, released.Status.Phase, Describe(job))}
}

func completedIndex(job *batchv1.Job, pod *corev1.Pod) bool {
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return false
	}
	for _, part := range strings.Split(job.Status.CompletedIndexes, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, lowErr := strconv.Atoi(first)
		high, highErr := strconv.Atoi(last)
		if lowErr == nil && highErr == nil && low <= index && index <= high {
			return true
		}
	}
	return false
}

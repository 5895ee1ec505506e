package world

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/world/apiserver"
)

// noIndex stands for a pod without a usable completion index.
const noIndex int32 = -1

// A podRecord is what happened to one pod.
type podRecord struct {
	uid types.UID
	key types.NamespacedName
	// pod is the newest version, or the last one if the pod is gone.
	pod     *corev1.Pod
	created time.Time
	gone    bool
	goneAt  time.Time

	// job is the Job that controls the pod, nil if none does; claimed is when
	// and by whom it came to that.
	job       *jobRecord
	claimedAt time.Time
	claimedBy string

	// due is when the pod was first to be counted: it had ended, or its deletion
	// was as good, while it held the finalizer and its Job selected it.
	due      bool
	dueAt    time.Time
	dueOrder uint64
	// first is the version that showed how the pod ended first; flipped says
	// that a later one told otherwise.
	first   *corev1.Pod
	endedAt time.Time
	flipped bool

	deletedAt time.Time
	deletedBy string
	// strayAt is when the Job's selector last did not match the pod.
	strayAt time.Time
	// released is when the finalizer went; excuse is why it went uncounted.
	releasedAt time.Time
	excuse     string

	restarts           int64
	ourWrites, foreign int
}

func (j *judge) podWritten(w apiserver.Write, ours bool) {
	old, _ := w.Old.(*corev1.Pod)
	next, _ := w.New.(*corev1.Pod)
	if ours {
		j.judgeOwnership(w, old, next)
		j.judgePodWrite(w, old, next)
	}
	j.observePod(w, ours, old, next)
}

// judgePodWrite holds an executor's write of a pod against the rules.
func (j *judge) judgePodWrite(w apiserver.Write, old, next *corev1.Pod) {
	switch {
	case old == nil:
		j.judgeCreation(w, next)
		return
	case holds(old) && !holds(next):
		j.judgeRelease(w, j.pods[w.UID], next)
	}
	if w.Verb == "delete" || w.Verb == "deletecollection" {
		j.judgeDeletion(w, j.pods[w.UID])
	}
}

func (j *judge) observePod(w apiserver.Write, ours bool, old, next *corev1.Pod) {
	p, known := j.pods[w.UID]
	if !known {
		p = &podRecord{uid: w.UID, key: w.Key, created: w.Time}
		j.pods[w.UID] = p
	}
	if p.flipped = p.flipped || flips(p.first, next); next != nil {
		p.pod = next
	} else {
		p.gone, p.goneAt = true, w.Time
	}
	j.observeOwner(w, p, next)
	p.observeEnd(w, ours, old, next)
	if p.job != nil {
		p.job.observePod(w, p)
	}
	j.countWrite(w, ours, p)
}

func (j *judge) observeOwner(w apiserver.Write, p *podRecord, next *corev1.Pod) {
	if next == nil {
		if p.job != nil {
			delete(p.job.live, p.uid)
		}
		return
	}
	owner := j.jobs[controllerUID(next)]
	if owner == p.job {
		return
	}
	if p.job != nil {
		delete(p.job.live, p.uid)
	}
	if p.job = owner; owner != nil {
		owner.live[p.uid] = p
		p.claimedAt, p.claimedBy = w.Time, w.By
	}
}

func (p *podRecord) observeEnd(w apiserver.Write, ours bool, old, next *corev1.Pod) {
	switch {
	case old == nil:
	case holds(old) && !holds(next):
		p.releasedAt = w.Time
		if !ours {
			p.excuse = "somebody else took its finalizer"
		}
	case !holds(old) && holds(next):
		p.excuse = ""
	}
	if next == nil {
		return
	}
	p.restarts = max(p.restarts, restarts(next))
	if p.first == nil && ended(next) {
		p.first, p.endedAt = next, w.Time
	}
	if p.deletedAt.IsZero() && next.DeletionTimestamp != nil {
		p.deletedAt, p.deletedBy = w.Time, w.By
	}
}

// observePod takes in what a version of a pod says to its Job.
func (r *jobRecord) observePod(w apiserver.Write, p *podRecord) {
	if p.gone {
		return
	}
	if !r.selects(p.pod) {
		p.strayAt = w.Time
		return
	}
	as := ended(p.pod) || (p.pod.DeletionTimestamp != nil && !replacesFailedOnly(r.job))
	if !p.due && as && holds(p.pod) {
		p.due, p.dueAt, p.dueOrder = true, w.Time, w.ResourceVersion
		r.ends = append(r.ends, p)
	}
}

// succeeded and failed are how the pod ended first, for good; neither is true of
// one that has not ended.
func (p *podRecord) succeeded() bool {
	return p.first != nil && p.first.Status.Phase == corev1.PodSucceeded
}

func (p *podRecord) failed() bool { return p.first != nil && p.first.Status.Phase == corev1.PodFailed }

// version is the pod as it ended, or as it is.
func (p *podRecord) version() *corev1.Pod {
	if p.first != nil {
		return p.first
	}
	return p.pod
}

// active reports whether the pod runs, or is to.
func (p *podRecord) active() bool {
	return !p.gone && !ended(p.pod) && p.pod.DeletionTimestamp == nil
}

// terminating reports whether the pod is being deleted and has not ended.
func (p *podRecord) terminating() bool {
	return !p.gone && !ended(p.pod) && p.pod.DeletionTimestamp != nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func flips(first, next *corev1.Pod) bool {
	return first != nil && next != nil && first.Status.Phase != next.Status.Phase
}

// holds reports whether a pod holds the tracking finalizer; one that is not there
// does not.
func holds(pod *corev1.Pod) bool {
	return pod != nil && slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// controllerUID is the UID of the Job that controls a pod; empty if none does.
func controllerUID(pod *corev1.Pod) types.UID {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "Job" {
		return ""
	}
	return ref.UID
}

func podIndex(pod *corev1.Pod) int32 {
	ix, err := strconv.ParseInt(pod.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32)
	if err != nil || ix < 0 {
		return noIndex
	}
	return int32(ix)
}

// countOf reads a count annotation; one that is absent or no count is 0.
func countOf(pod *corev1.Pod, annotation string) int32 {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

func restarts(pod *corev1.Pod) (n int64) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			n += int64(max(0, statuses[i].RestartCount))
		}
	}
	return n
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// disrupted reports whether something outside of the pod ended it.
func disrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// finishTime is when a pod says that it ended, as upstream reads it: by its
// containers, else by when it was no longer ready, else by its deletion, else by
// its creation.
func finishTime(pod *corev1.Pod) time.Time {
	if at := containersEnd(pod); !at.IsZero() {
		return at
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	if pod.DeletionTimestamp == nil {
		return pod.CreationTimestamp.Time
	}
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// containersEnd is when the last container ended; zero if one of them does not
// say.
func containersEnd(pod *corev1.Pod) (last time.Time) {
	for i := range pod.Status.ContainerStatuses {
		end := pod.Status.ContainerStatuses[i].State.Terminated
		if end == nil || end.FinishedAt.IsZero() {
			return time.Time{}
		}
		if end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

func (r *jobRecord) selects(pod *corev1.Pod) bool { return r.selector.Matches(labels.Set(pod.Labels)) }

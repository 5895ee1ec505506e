package demo

import (
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A history is what a finished Job does not show any more.
type history struct {
	// job is the Job as last seen; nil: not created yet.
	job *batchv1.Job
	// gone: the Job existed and was deleted.
	gone bool
	// highest are the highest numbers ever seen.
	highest peaks
	// startTimes are the start times that the status had, in order.
	startTimes []time.Time
	// announced: the status had the interim condition before the terminal one.
	announced bool
	// pods are all pods that the Job ever controlled and that no other Job adopted.
	pods []podPast
	// metrics are the highest values of those of watchedSeries, of all Jobs together.
	metrics map[string]float64
}

type peaks struct{ active, terminating, alive int32 }

// podPast is what is remembered of a pod.
type podPast struct {
	job      string
	index    int
	restarts int32
	// alive: the pod exists and has not ended. stopped: it was deleted before it ended.
	alive, stopped bool
	nodeSelector   map[string]string
	// memory is the limit of its last container.
	memory string
	// created is when the pod was created, ended when the last of its containers ended; zero: none has.
	created, ended time.Time
	// due is when the pod was to be gone at first; zero: nobody has deleted it. When a pod goes that nobody has ended, its
	// deletionTimestamp changes once more.
	due time.Time
}

// noIndex is the index of a pod that has none.
const noIndex = -1

func (h *history) saw(job *batchv1.Job) {
	h.job = job
	h.highest.active = max(h.highest.active, job.Status.Active)
	h.highest.terminating = max(h.highest.terminating, ptr.Deref(job.Status.Terminating, 0))
	if start := job.Status.StartTime; start != nil && !slices.ContainsFunc(h.startTimes, start.Time.Equal) {
		h.startTimes = append(h.startTimes, start.Time)
	}
	interim := conditionTrue(job, batchv1.JobSuccessCriteriaMet) || conditionTrue(job, batchv1.JobFailureTarget)
	h.announced = h.announced || (interim && !finished(job))
}

func finished(job *batchv1.Job) bool {
	return conditionTrue(job, batchv1.JobComplete) || conditionTrue(job, batchv1.JobFailed)
}

// saw updates what is remembered of a pod. A pod without an owner stays with its last
// owner.
func (p *podPast) saw(pod *corev1.Pod, exists bool) {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		p.job = owner.Name
	}
	p.index = noIndex
	if index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
		p.index = index
	}
	var restarts int32
	for _, status := range pod.Status.ContainerStatuses {
		restarts += status.RestartCount
	}
	p.restarts = max(p.restarts, restarts)
	p.alive = exists && !podEnded(pod)
	p.stopped = p.stopped || (!podEnded(pod) && pod.DeletionTimestamp != nil)
	if pod.DeletionTimestamp != nil && p.due.IsZero() {
		p.due = pod.DeletionTimestamp.Time
	}
	p.nodeSelector = pod.Spec.NodeSelector
	p.created = pod.CreationTimestamp.Time
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil && end.FinishedAt.After(p.ended) {
			p.ended = end.FinishedAt.Time
		}
	}
	for _, c := range pod.Spec.Containers {
		p.memory = c.Resources.Limits.Memory().String()
	}
}

func (o *observer) sawJob(job *batchv1.Job, exists bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.historyOf(job.Name)
	h.saw(job)
	h.gone = !exists
}

func (o *observer) sawPod(pod *corev1.Pod, exists bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	past := o.pods[pod.UID]
	if past == nil {
		past = &podPast{}
		o.pods[pod.UID] = past
	}
	past.saw(pod, exists)
	h := o.historyOf(past.job)
	h.highest.alive = max(h.highest.alive, o.alive(past.job))
}

// alive counts the pods of a Job that have not ended. The caller holds mu.
func (o *observer) alive(job string) int32 {
	var n int32
	for _, pod := range o.pods {
		if pod.job == job && pod.alive {
			n++
		}
	}
	return n
}

// historyOf returns the history of a Job by its name, to write in. The caller
// holds mu.
func (o *observer) historyOf(job string) *history {
	h := o.jobs[job]
	if h == nil {
		h = &history{}
		o.jobs[job] = h
	}
	return h
}

// past returns a copy of a Job's history.
func (o *observer) past(job string) history {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := *o.historyOf(job)
	h.startTimes, h.metrics = slices.Clone(h.startTimes), maps.Clone(o.metrics)
	for _, pod := range o.pods {
		if pod.job == job {
			h.pods = append(h.pods, *pod)
		}
	}
	return h
}

// newObserver returns an observer that has seen nothing yet.
func newObserver(executorURL string, examples []*example) *observer {
	return &observer{
		examples: examples, url: executorURL,
		metrics: map[string]float64{}, jobs: map[string]*history{}, pods: map[types.UID]*podPast{}, said: map[string]saying{},
	}
}

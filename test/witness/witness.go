// Package witness watches what really becomes of Jobs and their pods, whoever
// controls them, and holds the Jobs' status against it: no pod is lost, doubled
// or counted wrongly, whatever happened to the controllers meanwhile.
package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Witness remembers the last version of every pod of a namespace, deleted ones
// included.
type Witness struct {
	mu   sync.Mutex
	pods map[types.UID]*podRecord
	most map[types.UID]int // by Job: the most pods that ran at once
}

// podRecord is what was last seen of a pod.
type podRecord struct {
	*corev1.Pod
	gone bool
}

// Start watches a namespace until ctx ends. It returns when the first list has
// been read.
func Start(ctx context.Context, client kubernetes.Interface, namespace string) (*Witness, error) {
	w := newWitness()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.see(obj, false) },
		UpdateFunc: func(_, obj any) { w.see(obj, false) },
		DeleteFunc: func(obj any) { w.see(obj, true) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("watch the pods of %s: %w", namespace, context.Cause(ctx))
	}
	return w, nil
}

func newWitness() *Witness {
	return &Witness{pods: map[types.UID]*podRecord{}, most: map[types.UID]int{}}
}

func (w *Witness) see(obj any, gone bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	if owner == nil {
		// The owner is given up before the finalizer of a pod whose Job is gone.
		if known := w.pods[pod.UID]; known != nil {
			known.gone = known.gone || gone
		}
		return
	}
	w.pods[pod.UID] = &podRecord{Pod: pod, gone: gone}
	active := 0
	for _, p := range w.pods {
		if metav1.GetControllerOfNoCopy(p.Pod).UID == owner.UID && p.active() {
			active++
		}
	}
	w.most[owner.UID] = max(w.most[owner.UID], active)
}

// active: the pod has not ended, and nobody has asked for its end.
func (p *podRecord) active() bool {
	return !p.gone && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// Pods is how many pods of a Job were seen so far.
func (w *Witness) Pods(job types.UID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.podsOf(job))
}

// podsOf returns a Job's pods by name. The caller holds w.mu.
func (w *Witness) podsOf(job types.UID) []*podRecord {
	var pods []*podRecord
	for _, p := range w.pods {
		if metav1.GetControllerOfNoCopy(p.Pod).UID == job {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *podRecord) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// Check holds a finished Job against its pods. It is for Jobs whose pods nobody
// deletes and whose parallelism does not change. The error has a line for each
// thing that is wrong.
func (w *Witness) Check(job *batchv1.Job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := w.podsOf(job.UID)
	is := outcomeOf(job, pods)
	var errs []error
	expect := func(what string, got, want int) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	expect("pods that run or hold the finalizer", is.left, 0)
	expect("status.succeeded", int(job.Status.Succeeded), is.succeeded)
	expect("status.failed", int(job.Status.Failed), is.failed)
	expect("status.active", int(job.Status.Active), 0)
	if u := job.Status.UncountedTerminatedPods; u != nil {
		expect("pods in status.uncountedTerminatedPods", len(u.Succeeded)+len(u.Failed), 0)
	}
	if Condition(job) == batchv1.JobComplete && job.Spec.Completions != nil {
		expect("pods that succeeded", is.succeeded, int(*job.Spec.Completions))
	}
	expect("pods that were stopped, so one too many", is.stopped, 0)
	expect("pods that succeeded with an index that already had", is.repeated, 0)
	if most := w.most[job.UID]; job.Spec.Parallelism != nil && most > int(*job.Spec.Parallelism) {
		errs = append(errs, fmt.Errorf("pods that ran at once: %d, want at most %d", most, *job.Spec.Parallelism))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("job %s/%s is %s:\n%w\nits pods: %s", job.Namespace, job.Name, Condition(job), errors.Join(errs...), list(pods))
}

// outcome is what became of a Job's pods.
type outcome struct{ succeeded, repeated, failed, stopped, left int }

func outcomeOf(job *batchv1.Job, pods []*podRecord) outcome {
	var is outcome
	indexes := map[string]bool{}
	for _, p := range pods {
		switch {
		case !p.gone && (p.active() || slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)):
			is.left++
		case p.Status.Phase == corev1.PodSucceeded && indexed(job):
			index := p.Annotations[batchv1.JobCompletionIndexAnnotation]
			if indexes[index] {
				is.repeated++
			}
			indexes[index] = true
		case p.Status.Phase == corev1.PodSucceeded:
			is.succeeded++
		case p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil:
			is.failed++
		default:
			is.stopped++
		}
	}
	is.succeeded += len(indexes)
	return is
}

func indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// Condition returns the condition that ended a Job, or "" while it goes on.
func Condition(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type
		}
	}
	return ""
}

func list(pods []*podRecord) string {
	var names []string
	for _, p := range pods {
		name := p.Name + " " + string(p.Status.Phase)
		if p.gone {
			name += " (deleted)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

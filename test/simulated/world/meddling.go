package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/jobspec"
)

var (
	background = context.Background()
	errNone    = errors.New("there is none")
)

// owned are the objects that the Job or CronJob with a name controls, the oldest first.
func owned[T metav1.Object](w *world, resource string, owner types.NamespacedName) []T {
	var out []T
	for _, obj := range w.server.List(resource, owner.Namespace) {
		o, ok := obj.(T)
		if !ok {
			continue
		}
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil && ref.Name == owner.Name {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b T) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

func without(list []string, what string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == what })
}

// onPod does something to one of a Job's pods; those that have not ended come first.
func (w *world) onPod(s *step) error {
	pods := owned[*corev1.Pod](w, "pods", s.key())
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		if ledger.Ended(a) == ledger.Ended(b) {
			return 0
		}
		if ledger.Ended(a) {
			return 1
		}
		return -1
	})
	if len(pods) == 0 {
		return errNone
	}
	pod := pods[s.n%len(pods)]
	w.note(s.who, s.verb+": "+pod.Name)
	return w.meddle(s, pod)
}

// meddle applies a step to a pod.
func (w *world) meddle(s *step, pod *corev1.Pod) error {
	c := w.actor(s.who).CoreV1().Pods(pod.Namespace)
	change := func(change func(*corev1.Pod)) error {
		p, err := c.Get(background, pod.Name, metav1.GetOptions{})
		if err != nil || p.UID != pod.UID {
			return cmp.Or(err, errNone)
		}
		change(p)
		_, err = c.Update(background, p, metav1.UpdateOptions{})
		return err
	}
	labels := pod.Labels
	switch s.verb {
	case "delete a pod":
		return c.Delete(background, pod.Name, metav1.DeleteOptions{})
	case "delete a pod with force":
		return c.Delete(background, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	case "copy a pod":
		twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name + "-copy", Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers, OwnerReferences: pod.OwnerReferences,
		}, Spec: *pod.Spec.DeepCopy()}
		twin.Spec.NodeName = ""
		_, err := c.Create(background, twin, metav1.CreateOptions{})
		return err
	case "annotate a pod":
		return change(func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "example.com/note", s.d.String()) })
	case "edit the index of a pod":
		return change(func(p *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, batchv1.JobCompletionIndexAnnotation, s.text)
		})
	case "relabel a pod":
		return change(func(p *corev1.Pod) { p.Labels = map[string]string{"stray": "yes"} })
	case "relabel and label back":
		w.later(s.d, func() { _ = change(func(p *corev1.Pod) { p.Labels = labels }) }) // The pod may be gone.
		return change(func(p *corev1.Pod) { p.Labels = map[string]string{"stray": "yes"} })
	case "disown a pod":
		return change(func(p *corev1.Pod) { p.OwnerReferences = nil })
	case "give a pod away":
		return change(func(p *corev1.Pod) {
			for i := range p.OwnerReferences {
				p.OwnerReferences[i].Controller = new(false)
			}
		})
	case "put a finalizer on a pod":
		w.later(s.d, func() { _ = change(func(p *corev1.Pod) { p.Finalizers = without(p.Finalizers, "example.com/pod") }) })
		return change(func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.com/pod") })
	case "put the tracking finalizer back":
		return change(func(p *corev1.Pod) {
			p.Finalizers = append(without(p.Finalizers, batchv1.JobTrackingFinalizer), batchv1.JobTrackingFinalizer)
		})
	default: // "take the tracking finalizer off"
		return change(func(p *corev1.Pod) { p.Finalizers = without(p.Finalizers, batchv1.JobTrackingFinalizer) })
	}
}

// createPod creates a pod that no executor creates: one of an unmanaged Job, or of no Job.
func (w *world) createPod(s *step) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Labels: map[string]string{"app": "shared"}},
		Spec:       jobspec.New().Template.Spec,
	}
	key := types.NamespacedName{Namespace: namespace}
	if s.on != "" {
		key = s.key()
		job, err := w.actor(s.who).BatchV1().Jobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		pod.Labels = job.Spec.Template.Labels
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	} else if s.n == 0 {
		pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	_, err := w.actor(s.who).CoreV1().Pods(key.Namespace).Create(background, pod, metav1.CreateOptions{})
	return err
}

// limitPods sets a quota of pods, or removes it.
func (w *world) limitPods(s *step) error {
	c := w.actor(s.who).CoreV1().ResourceQuotas(namespace)
	if s.verb == "limit no pods" {
		return c.Delete(background, "pods", metav1.DeleteOptions{})
	}
	_, err := c.Create(background, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(s.n), resource.DecimalSI)}},
	}, metav1.CreateOptions{})
	return err
}

func (w *world) breakWatches(*step) error {
	w.judge.disturbed(time.Now())
	w.judge.hindered("", time.Now(), recovers)
	for _, name := range w.fleet.names() {
		w.server.BreakWatches(name)
	}
	return nil
}

// compact drops all history, so that interrupted watches cannot continue.
func (w *world) compact(s *step) error {
	w.server.Compact(w.lastVersion.Load())
	return w.breakWatches(s)
}

func (w *world) kill(s *step) error {
	if !w.fleet.kill(s.n) {
		return fmt.Errorf("no executor runs")
	}
	w.judge.disturbed(time.Now())
	w.judge.hindered("", time.Now(), s.d+recovers)
	w.later(s.d, func() {
		if err := w.fleet.start(); err != nil {
			w.broken("run", err.Error())
		}
	})
	return nil
}

// renewsAfterStep is how long a leader whose clock was set ahead may write nothing: until it
// has renewed its lease, which it does every 16 s, and has tried the write again.
const renewsAfterStep = 40 * time.Second

func (w *world) setClock(s *step) error {
	w.setClocks(time.Duration(w.fleet.skew.Load()) + s.d)
	return nil
}

// setClocks sets how far the executors' clocks are ahead of the API server's.
func (w *world) setClocks(ahead time.Duration) {
	before := time.Duration(w.fleet.skew.Swap(int64(ahead)))
	if ahead > before && w.plan.executor.elected() {
		// To the leader, its lease looks expired. It writes nothing until it has renewed it.
		w.judge.hindered("", time.Now(), renewsAfterStep)
	}
	w.judge.clocksSet(time.Now(), ahead)
}

package podjob

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A fate is what happens to a pod.
type fate struct {
	start, run time.Duration
	end        ending
	exit       int32
	linger     time.Duration // From its deletion to its end.
	obeys      bool          // It succeeds when it is deleted.
}

type ending string

const (
	succeeds  ending = "succeeds"
	fails     ending = "fails"
	evicted   ending = "is evicted"            // Failed, with the condition DisruptionTarget.
	preempted ending = "is preempted"          // DisruptionTarget, then deleted.
	removed   ending = "is deleted"            // By a user, with a grace period.
	forced    ending = "is deleted by force"   // Its finalizer keeps it.
	lost      ending = "is deleted for good"   // Its finalizers are removed, too.
	taken     ending = "gets another owner"    // And runs on.
	clears    ending = "succeeds, and is gone" // It succeeds and is deleted at once.
)

var endings = []ending{succeeds, fails, evicted, preempted, removed, forced, lost, taken, clears}

// lucky is the fate of pods for which none was drawn, and of all pods once the faults have ended.
var lucky = fate{start: 100 * time.Millisecond, run: 2 * time.Second, end: succeeds, linger: time.Second}

func (d drawer) fate(unlucky int) fate {
	f := fate{
		start: d.within(time.Millisecond, 5*time.Second), run: d.within(time.Millisecond, 60*time.Second), end: succeeds,
		linger: d.within(time.Millisecond, 30*time.Second), obeys: d.chance(15),
	}
	if d.chance(unlucky) {
		f.exit, f.end = pick(d, exits...), pick(d, fails, fails, fails, fails, evicted, preempted, removed, forced, lost, taken, clears)
	}
	return f
}

// kubelets run all pods, and do what others do to them.
type kubelets struct {
	*world
	fates   map[types.UID]fate
	created map[string]int // By group.
	dying   map[types.UID]bool
}

// see handles a write of a pod.
func (k *kubelets) see(old, pod *corev1.Pod) {
	switch {
	case pod == nil:
	case old == nil:
		f := k.fateOf(pod)
		k.fates[pod.UID] = f
		k.later(f.start, pod, func(p *corev1.Pod) { k.start(p, f) })
	case pod.DeletionTimestamp != nil && !k.dying[pod.UID]:
		k.dying[pod.UID] = true
		k.later(k.fates[pod.UID].linger, pod, k.stop)
	}
}

// fateOf is the next fate of the pod's group.
func (k *kubelets) fateOf(pod *corev1.Pod) fate {
	g := k.owner.group(pod.Annotations[groupAnnotation])
	if g == nil || !k.owner.controls(pod) || k.calm() {
		return lucky
	}
	n := k.created[g.name]
	k.created[g.name]++
	if n >= len(g.plan.fates) {
		return lucky
	}
	return g.plan.fates[n]
}

// later does something to a pod, if it still exists then.
func (k *kubelets) later(d time.Duration, pod *corev1.Pod, do func(*corev1.Pod)) {
	key, uid := keyOf(pod), pod.UID
	k.after(d, func() {
		if p := k.pod(key); p != nil && p.UID == uid {
			do(p)
		}
	})
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (w *world) pod(key types.NamespacedName) *corev1.Pod {
	object, _ := w.server.Get("pods", key)
	pod, _ := object.(*corev1.Pod)
	return pod
}

func (k *kubelets) start(pod *corev1.Pod, f fate) {
	if ended(pod) || pod.DeletionTimestamp != nil || k.server.Bind("scheduler", keyOf(pod), pod.UID, "node") != nil {
		return
	}
	k.status(pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.Now())
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	})
	k.later(f.run, pod, func(p *corev1.Pod) { k.end(p, f) })
}

func (k *kubelets) end(pod *corev1.Pod, f fate) {
	if ended(pod) || pod.DeletionTimestamp != nil {
		return
	}
	k.came(string(f.end))
	switch f.end {
	case succeeds:
		k.status(pod, setEnded(0))
	case clears:
		k.status(pod, setEnded(0))
		k.remove("user", pod, nil)
	case fails:
		k.status(pod, setEnded(f.exit))
	case evicted:
		k.status(pod, func(p *corev1.Pod) { setEnded(137)(p); disrupt(p) })
	case preempted:
		k.status(pod, disrupt)
		k.remove("scheduler", pod, nil)
	case removed:
		k.remove("user", pod, nil)
	case forced:
		k.remove("user", pod, new(int64(0)))
	case lost:
		k.lose(pod)
	case taken:
		k.takeOver(pod)
	}
}

// stop ends a pod that is being deleted.
func (k *kubelets) stop(pod *corev1.Pod) {
	if !ended(pod) && pod.Spec.NodeName != "" {
		exit := int32(143)
		if k.fates[pod.UID].obeys {
			exit = 0
		}
		k.status(pod, setEnded(exit))
	}
	k.remove("kubelet", pod, new(int64(0)))
}

// lose removes a pod for good, as users do who remove its finalizers.
func (k *kubelets) lose(pod *corev1.Pod) {
	k.change(pod, func(p *corev1.Pod) { p.Finalizers = nil })
	k.remove("user", pod, new(int64(0)))
}

// takeOver makes another object the pod's controller.
func (k *kubelets) takeOver(pod *corev1.Pod) {
	other := k.owner.reference()
	other.Name, other.UID = "other", "11111111-1111-4111-8111-111111111111"
	k.change(pod, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{other} })
}

func (k *kubelets) change(pod *corev1.Pod, do func(*corev1.Pod)) {
	k.server.Update("user", "pods", "", keyOf(pod), func(o runtime.Object) { do(o.(*corev1.Pod)) })
}

func (k *kubelets) status(pod *corev1.Pod, do func(*corev1.Pod)) {
	k.server.Update("kubelet", "pods", "status", keyOf(pod), func(o runtime.Object) { do(o.(*corev1.Pod)) })
}

func (k *kubelets) remove(by string, pod *corev1.Pod, grace *int64) {
	k.server.Delete(by, "pods", keyOf(pod), metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
}

func setEnded(exit int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		if exit == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, StartedAt: metav1.Now(), FinishedAt: metav1.Now()},
		}}}
	}
}

func disrupt(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "Drawn", LastTransitionTime: metav1.Now(),
	})
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active reports whether a pod counts as one that runs.
func active(p *corev1.Pod) bool { return !ended(p) && p.DeletionTimestamp == nil }

func tracked(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) }

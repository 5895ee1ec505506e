package world

import (
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/podstatus"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

const (
	kubeletName = "kubelet"
	podGCName   = "pod-gc"
	nodeName    = "node"

	nodeLifecycle = "node-lifecycle"
)

// nodePatience is how long the pods of a lost node stay before they are collected.
const nodePatience = 40 * time.Second

// kubelets simulate all nodes: they see each write of a pod, and act after a while.
// Their requests never fail.
type kubelets struct {
	w *world
	// created counts the pods of a Job or CronJob of the plan.
	created map[string]int
	dying   map[types.UID]bool
	fates   map[types.UID]fate
}

func newKubelets(w *world) *kubelets {
	return &kubelets{w: w, created: map[string]int{}, dying: map[types.UID]bool{}, fates: map[types.UID]fate{}}
}

// see handles a write of a pod. The world calls it for each write, in order.
func (k *kubelets) see(write apiserver.Write) {
	pod, ok := write.New.(*corev1.Pod)
	if !ok {
		return
	}
	if write.Old == nil {
		f := k.fateOf(pod)
		k.fates[pod.UID] = f
		if f.problem != "" {
			k.after(f.shows, pod, func(p *corev1.Pod) { k.hinder(p, f.problem) })
		}
		k.after(f.start, pod, func(p *corev1.Pod) { k.run(p, f) })
	}
	if old, ok := write.Old.(*corev1.Pod); ok && toldToEnd(old, pod) && !k.fates[pod.UID].deaf {
		at := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
		k.after(max(0, at.Sub(write.Time))+k.fates[pod.UID].linger, pod, k.overdue)
	}
	if pod.DeletionTimestamp != nil && !k.dying[pod.UID] {
		k.dying[pod.UID] = true
		k.remove(pod)
	}
}

// after does something to a pod some time later, if it still exists.
func (k *kubelets) after(d time.Duration, pod *corev1.Pod, do func(*corev1.Pod)) {
	key, uid := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID
	k.w.after(d+hair(uid), func() {
		obj, ok := k.w.server.Get("pods", key)
		if p, isPod := obj.(*corev1.Pod); ok && isPod && p.UID == uid {
			do(p)
		}
	})
}

// hair is a time of less than a microsecond that differs from pod to pod: what kubelets do
// to several pods after the same delay has an order.
func hair(pod types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod)) // A hash takes everything.
	return time.Duration(h.Sum32() % uint32(time.Microsecond))
}

// fateOf is the fate of a new pod: the next one in its Job's plan; without one, the pod
// succeeds soon.
func (k *kubelets) fateOf(pod *corev1.Pod) fate {
	calm := fate{start: 100 * time.Millisecond, ready: 200 * time.Millisecond, run: 2 * time.Second, end: endsWell, linger: time.Second}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return calm
	}
	fates := k.w.fatesOf(pod.Namespace + "/" + owner.Name)
	n := k.created[owner.Name]
	k.created[owner.Name]++
	if n >= len(fates) {
		return calm
	}
	return fates[n]
}

// fatesOf are the fates of the pods of a Job, by its name.
func (w *world) fatesOf(on string) []fate {
	for _, j := range w.plan.jobs {
		if j.on() == on {
			return j.fates
		}
	}
	for _, c := range w.plan.crons {
		if strings.HasPrefix(on, c.on()+"-") {
			return c.fates
		}
	}
	return nil
}

// run binds a pod, starts its containers and ends them.
func (k *kubelets) run(pod *corev1.Pod, f fate) {
	if pod.DeletionTimestamp != nil || ledger.Ended(pod) {
		return
	}
	if err := k.bind(pod); err != nil {
		return // It is gone.
	}
	k.status(pod, func(p *corev1.Pod) {
		clearProblem(p)
		setRunning(p, false)
	})
	k.after(f.ready, pod, func(p *corev1.Pod) {
		if !ledger.Ended(p) && p.DeletionTimestamp == nil {
			k.status(p, func(p *corev1.Pod) { setRunning(p, true) })
		}
	})
	if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil {
		k.after(time.Duration(*limit)*time.Second, pod, k.overdue)
	}
	if f.restarts > 0 {
		k.after(f.run/2, pod, func(p *corev1.Pod) {
			if !ledger.Ended(p) && p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
				k.status(p, func(p *corev1.Pod) { setRestarts(p, f.restarts) })
			}
		})
	}
	if f.end != restless {
		k.after(f.run, pod, func(p *corev1.Pod) { k.end(p, f) })
	}
}

// hinder says what keeps a pod from starting.
func (k *kubelets) hinder(pod *corev1.Pod, problem string) {
	if pod.DeletionTimestamp != nil || ledger.Ended(pod) {
		return
	}
	if problem == "Unschedulable" {
		k.statusBy("scheduler", pod, func(p *corev1.Pod) { setProblem(p, problem, time.Now()) })
	} else if k.bind(pod) == nil {
		k.status(pod, func(p *corev1.Pod) { setProblem(p, problem, time.Now()) })
	}
}

func (k *kubelets) bind(pod *corev1.Pod) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	node := nodeName
	if k.fates[pod.UID].alone {
		node = ownNode(pod)
		k.createNode(node)
	}
	return k.w.server.Bind("scheduler", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID, node)
}

// end ends a pod as its fate says, unless it has ended or is being deleted.
func (k *kubelets) end(pod *corev1.Pod, f fate) {
	if ledger.Ended(pod) || pod.DeletionTimestamp != nil {
		return
	}
	switch f.end {
	case endsWell:
		k.status(pod, func(p *corev1.Pod) { setEnded(p, corev1.PodSucceeded, fate{}) })
	case cleared:
		k.status(pod, func(p *corev1.Pod) { setEnded(p, corev1.PodSucceeded, fate{}) })
		k.delete("somebody", pod, nil)
	case endsBadly:
		k.status(pod, func(p *corev1.Pod) {
			setEnded(p, corev1.PodFailed, f)
			if f.exit == 137 && f.container%2 == 0 {
				outOfMemory(p)
			}
		})
	case evicted:
		k.status(pod, func(p *corev1.Pod) {
			setEnded(p, corev1.PodFailed, fate{exit: 137})
			disrupt(p, corev1.PodReasonTerminationByKubelet)
			p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory."
		})
	case preempted:
		k.status(pod, func(p *corev1.Pod) { disrupt(p, corev1.PodReasonPreemptionByScheduler) })
		k.delete("scheduler", pod, nil)
	case removed:
		k.delete("somebody", pod, nil)
	case forced:
		k.delete("somebody", pod, new(int64(0)))
	case nodeLost:
		k.status(pod, func(p *corev1.Pod) { disrupt(p, "DeletionByTaintManager") })
		k.delete(nodeLifecycle, pod, nil)
		k.loseNode(pod, f)
		switch f.patience {
		case 0:
			k.after(nodePatience, pod, k.collect)
		case forEver:
		default:
			k.after(f.patience, pod, k.comeBack)
		}
	case returns:
		k.giveUp(pod, f.away)
	}
}

// toldToEnd reports whether a write limits how long a pod may be active that a node has taken.
func toldToEnd(old, pod *corev1.Pod) bool {
	limit := pod.Spec.ActiveDeadlineSeconds
	return limit != nil && pod.Status.StartTime != nil && (old.Spec.ActiveDeadlineSeconds == nil || *limit < *old.Spec.ActiveDeadlineSeconds)
}

// overdue fails a pod that has been active for as long as it may.
func (k *kubelets) overdue(pod *corev1.Pod) {
	if ledger.Ended(pod) || pod.DeletionTimestamp != nil {
		return
	}
	k.status(pod, func(p *corev1.Pod) {
		if anyRan(p) {
			setEnded(p, corev1.PodFailed, fate{exit: 143})
		} else {
			setNeverRan(p)
		}
		p.Status.Reason, p.Status.Message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	})
}

// giveUp says that a pod has failed because its node does not answer. The pod runs all the
// while, and the node says so when it is back.
func (k *kubelets) giveUp(pod *corev1.Pod, away time.Duration) {
	k.statusBy(nodeLifecycle, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "NodeLost"
		podstatus.SetCondition(p, corev1.PodReady, false, "", time.Now())
	})
	k.after(away, pod, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			k.status(p, func(p *corev1.Pod) {
				p.Status.Reason = ""
				setRunning(p, true)
			})
		}
	})
}

// collect does what the pod garbage collector does with the pods of a node that is
// gone.
func (k *kubelets) collect(pod *corev1.Pod) {
	if k.fates[pod.UID].alone {
		k.w.server.Delete(nodeLifecycle, "nodes", types.NamespacedName{Name: ownNode(pod)}, metav1.DeleteOptions{})
	}
	if !ledger.Ended(pod) {
		k.statusBy(podGCName, pod, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			disrupt(p, "DeletionByPodGC")
		})
	}
	k.delete(podGCName, pod, new(int64(0)))
}

// comeBack ends a pod whose node is back: it has run all the while, and its deletion goes on.
func (k *kubelets) comeBack(pod *corev1.Pod) {
	if k.fates[pod.UID].alone {
		k.setNode(kubeletName, ownNode(pod), corev1.ConditionTrue)
	}
	if !ledger.Ended(pod) {
		k.status(pod, func(p *corev1.Pod) {
			if k.fates[pod.UID].obeys {
				setEnded(p, corev1.PodSucceeded, fate{})
				return
			}
			setEnded(p, corev1.PodFailed, fate{exit: 143})
		})
	}
	k.delete(kubeletName, pod, new(int64(0)))
}

// remove completes the deletion of a pod.
func (k *kubelets) remove(pod *corev1.Pod) {
	f := k.fates[pod.UID]
	if f.end == nodeLost && disrupted(pod) {
		return // No kubelet is there to end it.
	}
	k.after(f.linger, pod, func(p *corev1.Pod) {
		if p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0 {
			if f.problem != "" && p.Spec.NodeName == "" && !ledger.Ended(p) {
				k.statusBy(podGCName, p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
				return
			}
			if f.obeys && !ledger.Ended(p) { // Only its finalizers keep it; its node may still report its end.
				k.status(p, func(p *corev1.Pod) { setEnded(p, corev1.PodSucceeded, fate{}) })
			}
			return
		}
		if !ledger.Ended(p) && p.Spec.NodeName != "" {
			k.status(p, func(p *corev1.Pod) {
				if f.problem != "" && !anyRan(p) {
					setNeverRan(p)
					return
				}
				if f.obeys {
					setEnded(p, corev1.PodSucceeded, fate{})
					return
				}
				setEnded(p, corev1.PodFailed, fate{exit: 143})
			})
		}
		k.delete(kubeletName, p, new(int64(0)))
	})
}

func (k *kubelets) status(pod *corev1.Pod, change func(*corev1.Pod)) {
	k.statusBy(kubeletName, pod, change)
}

func (k *kubelets) statusBy(by string, pod *corev1.Pod, change func(*corev1.Pod)) {
	k.w.server.Update(by, "pods", "status", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, func(obj runtime.Object) {
		if p, ok := obj.(*corev1.Pod); ok && p.UID == pod.UID {
			change(p)
		}
	})
}

func (k *kubelets) delete(by string, pod *corev1.Pod, grace *int64) {
	k.w.server.Delete(by, "pods", types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}

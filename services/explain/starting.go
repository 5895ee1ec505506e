package explain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/simulate"
)

// initializing finds a pod whose containers wait for an init container that runs for long, or ends again and
// again. The pod is Pending meanwhile, but it has started.
func (w *work) initializing(p *corev1.Pod) (PodProblem, bool) {
	for _, s := range p.Status.InitContainerStatuses {
		running, logs := s.State.Running, fmt.Sprintf("kubectl logs %s -n %s -c %s", p.Name, p.Namespace, s.Name)
		if running == nil {
			continue
		}
		goesOn := ""
		switch since := w.Now.Sub(running.StartedAt.Time); {
		case since >= SlowStart:
			goesOn = fmt.Sprintf("has been running for %s, and", simulate.Clock(since.Round(accuracy)))
		case s.RestartCount > 0 && w.Now.Sub(p.CreationTimestamp.Time) >= SlowStart:
			goesOn = fmt.Sprintf("has ended %s in this pod%s, and runs again;", times(s.RestartCount), lastExit(&s))
			logs += " --previous"
		default:
			continue
		}
		switch {
		case !restartable(p, s.Name):
			return PodProblem{Kind: "init", Why: fmt.Sprintf("init container %s %s the next container starts when it has succeeded", s.Name, goesOn), Change: logs}, true
		case !ptr.Deref(s.Started, true):
			return PodProblem{Kind: "init", Why: fmt.Sprintf("sidecar %s %s the next container starts when it has passed its startup probe", s.Name, goesOn), Change: logs}, true
		}
	}
	return PodProblem{}, false
}

// slow finds a pod that is Pending for long, and nothing says why.
func (w *work) slow(p *corev1.Pod) (PodProblem, bool) {
	age := w.Now.Sub(p.CreationTimestamp.Time)
	if p.Status.Phase != corev1.PodPending || age < SlowStart {
		return PodProblem{}, false
	}
	change := fmt.Sprintf("kubectl describe pod %s -n %s", p.Name, p.Namespace)
	if w.recorded { // a controller reads no events; the user's command does
		change = fmt.Sprintf("kubectl jobpolicy explain job/%s -n %s may say why.", w.Job.Name, w.Job.Namespace)
	}
	why := fmt.Sprintf("it has been Pending for %s", simulate.Clock(age.Round(accuracy)))
	if p.Spec.NodeName != "" && condition(p, corev1.PodScheduled) == corev1.ConditionTrue {
		why += fmt.Sprintf(": node %s has it, and has started %s", p.Spec.NodeName, started(p))
	}
	return PodProblem{Kind: "starting", Why: why + w.pulling(p), Change: change}, true
}

// started says what of a Pending pod has been started.
func started(p *corev1.Pod) string {
	for _, s := range p.Status.InitContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0 {
			return "only init containers"
		}
	}
	return "no container yet"
}

// pulling says for how long the node has been pulling an image; empty if it pulls none.
func (w *work) pulling(p *corev1.Pod) string {
	events := w.PodEvents[p.Name]
	e := latest(events, "Pulling")
	if e == nil {
		return ""
	}
	for _, later := range []string{"Pulled", "Failed", "Created", "Started"} {
		if l := latest(events, later); l != nil && !Seen(l).Before(Seen(e)) {
			return ""
		}
	}
	return fmt.Sprintf("; the pull of an image began %s (%s)", w.ago(Seen(e)), e.Message)
}

// silent finds a pod on a node that is no longer heard of: the controller of nodes takes the condition Ready away, and the
// kubelet does not say that a container is not ready.
func silent(p *corev1.Pod) (PodProblem, bool) {
	if p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == "" || len(p.Spec.ReadinessGates) > 0 ||
		condition(p, corev1.PodReady) != corev1.ConditionFalse || condition(p, corev1.ContainersReady) != corev1.ConditionTrue {
		return PodProblem{}, false
	}
	return PodProblem{
		Kind: "status", Why: fmt.Sprintf("its containers are ready, but the pod is not: its node %s may be lost", p.Spec.NodeName),
		Change: fmt.Sprintf("kubectl get node %s. If it is lost, the pod is deleted when the time is over for which it tolerates that (tolerationSeconds, 5 minutes by default).", p.Spec.NodeName),
	}, true
}

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/services/internal/logging"
)

// accuracy is that of the durations in reports.
const accuracy = time.Second

// maxMessage bounds what a pod or container says of itself, in bytes.
const maxMessage = 300

// said joins a reason and a message of a cluster component in one line; empty if there are none.
func said(reason, message string) string {
	message = logging.Text(strings.TrimSuffix(strings.Join(strings.Fields(message), " "), "."), maxMessage)
	return strings.Trim(reason+": "+message, ": ")
}

// ofItself is the pod's own reason, as the kubelet or a controller of nodes or evictions gave it
// (Evicted, NodeLost, OutOfcpu …); empty if it has none.
func ofItself(p *corev1.Pod) string { return said(p.Status.Reason, p.Status.Message) }

// reasoned finds a pod that has not ended and has a reason of its own.
func reasoned(p *corev1.Pod) (PodProblem, bool) {
	why, kind := ofItself(p), "status"
	if why == "" {
		return PodProblem{}, false
	}
	if p.Status.Phase == corev1.PodPending {
		kind = "starting"
	}
	return PodProblem{Kind: kind, Why: why, Change: fmt.Sprintf("kubectl describe pod %s -n %s", p.Name, p.Namespace)}, true
}

// lastFailed is the pod that failed last among those that still exist; nil if there is
// none.
func (w *work) lastFailed() *corev1.Pod {
	var last *corev1.Pod
	for i := range w.Facts.Pods {
		if p := &w.Facts.Pods[i]; p.Status.Phase == corev1.PodFailed && (last == nil || failedAt(p).After(failedAt(last))) {
			last = p
		}
	}
	return last
}

// failedAt is when the last container ended. A pod without such a container has failed when its
// conditions changed last, or when it was created.
func failedAt(p *corev1.Pod) time.Time {
	var at time.Time
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	if !at.IsZero() {
		return latestOf(at, p.CreationTimestamp.Time)
	}
	at = p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.DisruptionTarget {
			at = latestOf(at, c.LastTransitionTime.Time)
		}
	}
	return at
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// whyFailed says what the pod says of itself, and that it was disrupted, before the exit code:
// that is then only how the container was ended.
func whyFailed(p *corev1.Pod) string {
	parts := []string{ofItself(p), disrupted(p), exited(p)}
	text := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
	return cmp.Or(text, "it says no reason")
}

func disrupted(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("it was disrupted (condition %s)", said(string(c.Type), said(c.Reason, c.Message)))
		}
	}
	return ""
}

// exited names a container that ended with a code other than 0. A sidecar's code fails no pod.
func exited(p *corev1.Pod) string {
	var sidecars, others []corev1.ContainerStatus
	for _, s := range p.Status.InitContainerStatuses {
		if restartable(p, s.Name) {
			sidecars = append(sidecars, s)
		} else {
			others = append(others, s)
		}
	}
	for _, s := range slices.Concat(p.Status.ContainerStatuses, others, sidecars) {
		t := s.State.Terminated
		if t == nil || t.ExitCode == 0 {
			continue
		}
		text := fmt.Sprintf("container %s ended with exit code %d", s.Name, t.ExitCode)
		if t.Reason != "" && t.Reason != "Error" {
			text += " (" + said(t.Reason, t.Message) + ")"
		}
		return text
	}
	return ""
}

// restartable reports whether an init container is a sidecar.
func restartable(p *corev1.Pod, initContainer string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == initContainer && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

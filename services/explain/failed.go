package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
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

// lastFailed is the pod that failed last among those that still exist; nil if there is none. Pods that the end of
// the Job has ended come in only if there is no other: they say nothing about why it failed.
func (w *work) lastFailed() *corev1.Pod {
	if p := w.lastFailedOf(func(p *corev1.Pod) bool { return !w.endedWithJob(p) }); p != nil {
		return p
	}
	return w.lastFailedOf(func(*corev1.Pod) bool { return true })
}

func (w *work) lastFailedOf(counts func(*corev1.Pod) bool) *corev1.Pod {
	var last *corev1.Pod
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		if p.Status.Phase == corev1.PodFailed && counts(p) && (last == nil || failedAt(p).After(failedAt(last))) {
			last = p
		}
	}
	return last
}

// endedWithJob reports whether a pod may have failed only because its Job has: it was deleted, or ended by the
// option whenJobFails, which shows as a deadline of the pod. Times of the API have whole seconds.
func (w *work) endedWithJob(p *corev1.Pod) bool {
	verdict := jobCondition(w.Job, batchv1.JobFailureTarget)
	if verdict == nil {
		verdict = jobCondition(w.Job, batchv1.JobFailed)
	}
	if verdict == nil || failedAt(p).Before(verdict.LastTransitionTime.Time) {
		return false
	}
	return p.DeletionTimestamp != nil || p.Status.Reason == "DeadlineExceeded"
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

// exited names a container that ended with a code other than 0.
func exited(p *corev1.Pod) string {
	s := failedContainer(p)
	if s == nil {
		return ""
	}
	return fmt.Sprintf("container %s ended with %s", s.Name, exitCode(s.State.Terminated))
}

// failedContainer is one that ended with a code other than 0; nil if there is none. A sidecar's code fails no pod.
func failedContainer(p *corev1.Pod) *corev1.ContainerStatus {
	var sidecars, others []corev1.ContainerStatus
	for _, s := range p.Status.InitContainerStatuses {
		if restartable(p, s.Name) {
			sidecars = append(sidecars, s)
		} else {
			others = append(others, s)
		}
	}
	all := slices.Concat(p.Status.ContainerStatuses, others, sidecars)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// howToSee is the command that shows more of a failed pod: the log of the container that failed. Of several containers,
// kubectl shows the first one. A pod that its node has rejected has no log.
func howToSee(p *corev1.Pod) string {
	switch s := failedContainer(p); {
	case rejected(p):
		return fmt.Sprintf("kubectl describe pod %s -n %s", p.Name, p.Namespace)
	case s != nil && len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) > 1:
		return fmt.Sprintf("kubectl logs %s -n %s -c %s", p.Name, p.Namespace, s.Name)
	}
	return fmt.Sprintf("kubectl logs %s -n %s", p.Name, p.Namespace)
}

// rejected reports whether the node that a failed pod was assigned to did not take it (OutOfcpu, NodeAffinity …). The
// kubelet begins the message so.
func rejected(p *corev1.Pod) bool { return strings.HasPrefix(p.Status.Message, "Pod was rejected: ") }

// exitCode is how a container ended: its exit code, and the reason if there is one that says more.
func exitCode(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		text += " (" + said(t.Reason, t.Message) + ")"
	}
	return text
}

// lastFailure is a sentence about the pod that failed last, named so; empty if none is left.
func (w *work) lastFailure(named string) string {
	p := w.lastFailed()
	if p == nil || w.endedWithJob(p) {
		return ""
	}
	return fmt.Sprintf(" %s failed %s: %s.", fmt.Sprintf(named, p.Name), w.ago(failedAt(p)), whyFailed(p))
}

// whyPodsFailed is a sentence behind a verdict that counts failures, and so does not say why they happened.
func (w *work) whyPodsFailed(reason string) string {
	if countsFailures(reason) {
		return w.lastFailure("Pod %s")
	}
	return ""
}

// adviseOnFailures says what counted as failures, if that was no fault of the program.
func (w *work) adviseOnFailures(reason string) {
	if w.recorded { // Its facts may lack pods.
		return
	}
	counted := countsFailures(reason)
	if counted || reason == batchv1.JobReasonDeadlineExceeded {
		w.adviseOnPodsThatAreGone(counted)
	}
	p := w.lastFailed()
	if !counted || p == nil || w.endedWithJob(p) {
		return
	}
	switch {
	case rejected(p):
		w.advise("Node %s rejected pod %s before a container started. That counts as a failure, and no rule of spec.podFailurePolicy matches it: there is neither an exit code nor the condition %s. In a new Job, a higher spec.backoffLimit tries again.",
			p.Spec.NodeName, p.Name, corev1.DisruptionTarget)
	case disrupted(p) != "" && !w.ignoredByPolicy(p):
		w.advise("A disruption counts as a failure. In a new Job, a rule of spec.podFailurePolicy with the action Ignore for the condition %s leaves it out (with restartPolicy Never).", corev1.DisruptionTarget)
	default:
		w.adviseOnSignal(p)
	}
}

// The exit codes of a container that was told to end, and of one that was ended.
const (
	terminated = 143
	killed     = 137
)

// adviseOnSignal says what may have ended a container that has a liveness probe, if that was a signal.
func (w *work) adviseOnSignal(p *corev1.Pod) {
	s := failedContainer(p)
	if s == nil || s.State.Terminated.Reason == "OOMKilled" || s.State.Terminated.ExitCode != killed && s.State.Terminated.ExitCode != terminated {
		return
	}
	if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name && c.LivenessProbe != nil }) {
		w.advise("Exit code %d is that of a signal from outside. Container %s has a livenessProbe, which may have failed; the events of the pod say so for a while: kubectl get events -n %s --field-selector involvedObject.kind=Pod,involvedObject.name=%s",
			s.State.Terminated.ExitCode, s.Name, p.Namespace, p.Name)
	}
}

// adviseOnPodsThatAreGone says where more shows of a Job that has failed and has no pods any more.
func (w *work) adviseOnPodsThatAreGone(counted bool) {
	if len(w.Facts.Pods) > 0 {
		return
	}
	text := "The Job has no pods any more, so nothing here says what they did."
	if counted {
		text = "The Job has no pods any more, so nothing here says why they failed. A pod that was deleted, or evicted from its node, counts as failed, too."
	}
	if e := latest(w.Events, "SuccessfulCreate"); e != nil {
		if pod, ok := strings.CutPrefix(e.Message, "Created pod: "); ok {
			text += fmt.Sprintf(" The events of the last one tell more for a while: kubectl get events -n %s --field-selector involvedObject.kind=Pod,involvedObject.name=%s", w.Namespace, pod)
		}
	}
	w.advise("%s", text)
}

// ignoredByPolicy reports whether the pod failure policy leaves the failure of a pod out.
func (w *work) ignoredByPolicy(p *corev1.Pod) bool {
	req, err := wire.JobRequest(w.Job)
	return err == nil && ignored(req.GetSpec().GetPodFailurePolicy(), p)
}

// countsFailures reports whether a verdict is about how many failures there were.
func countsFailures(reason string) bool {
	return slices.Contains([]string{batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded}, reason)
}

// adviseOnMemory says what helps a pod that ran out of memory, if the last one that failed did.
func (w *work) adviseOnMemory() {
	p := w.lastFailed()
	if p == nil {
		return
	}
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.Reason == "OOMKilled"
	})
	if i < 0 {
		return
	}
	more := fmt.Sprintf("; under jobpolicy, the option job.nextTryResources (annotation %s) gives each further try more", wire.Policy)
	if policy, _ := wire.PolicySpec(w.Job.Annotations); policy.GetJob().GetNextTryResources() != nil {
		more = ""
	}
	w.advise("Container%s ran out of memory. A new Job may set a higher limit (resources.limits.memory)%s.", named(" ", p.Status.ContainerStatuses[i].Name), more)
}

// restartable reports whether an init container is a sidecar.
func restartable(p *corev1.Pod, initContainer string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == initContainer && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

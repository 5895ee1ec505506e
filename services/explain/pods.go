package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// SlowStart is how long a pod may take to start before a report mentions it.
const SlowStart = 2 * time.Minute

// A PodProblem is a pod that cannot start, does not end, or failed last.
type PodProblem struct {
	Pod string `json:"pod"`
	// Kind is image, config, scheduling, volume, sandbox, starting, crash, init (an init container
	// runs for long), sidecar, status (it has a reason of its own), terminating or failed.
	Kind string `json:"kind"`
	Why  string `json:"why"`
	// Change says what would change it.
	Change string `json:"change,omitempty"`
}

// notStarting are the kinds of problems of pods that exist and do not run.
var notStarting = []string{"image", "config", "scheduling", "volume", "sandbox", "starting"}

// maxPods is how many pods a report names.
const maxPods = 10

// lookAtPods finds the pods that need attention.
func (w *work) lookAtPods() {
	for i := range w.Facts.Pods {
		p := &w.Facts.Pods[i]
		problem, ok := w.problem(p)
		if !ok {
			continue
		}
		problem.Pod = p.Name
		switch {
		case slices.Contains(notStarting, problem.Kind):
			w.notStarted++
			w.uncounted = w.uncounted || !w.onFailure() || restartsOf(p) == 0
		case problem.Kind == "init" || problem.Kind == "sidecar":
			w.keptOpen++
		}
		w.Report.Pods = append(w.Report.Pods, problem)
	}
	if w.notStarted > 0 {
		w.notStarted = max(w.notStarted, w.Facts.NotStarting)
	}
	slices.SortStableFunc(w.Report.Pods, func(a, b PodProblem) int {
		return boolOrder(slices.Contains(notStarting, a.Kind), slices.Contains(notStarting, b.Kind))
	})
	if last := w.lastFailed(); last != nil {
		w.Report.Pods = append(w.Report.Pods, PodProblem{
			Pod: last.Name, Kind: "failed", Why: fmt.Sprintf("failed %s: %s", w.ago(failedAt(last)), whyFailed(last)),
			Change: howToSee(last),
		})
	}
	if more := len(w.Report.Pods) - maxPods; more > 0 {
		w.Report.Pods = w.Report.Pods[:maxPods]
		w.Report.Unread = append(w.Report.Unread, fmt.Sprintf("pods that need attention and are not shown: %d", more))
	}
}

// boolOrder puts true before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (w *work) problem(p *corev1.Pod) (PodProblem, bool) {
	switch {
	case p.DeletionTimestamp != nil:
		return w.lateEnd(p)
	case ended(p):
		return PodProblem{}, false
	}
	for _, look := range []func(*corev1.Pod) (PodProblem, bool){reasoned, unscheduled, waitingContainer, w.eventProblem, sidecar, w.initializing, w.slow, silent} {
		if problem, ok := look(p); ok {
			return problem, true
		}
	}
	return PodProblem{}, false
}

func unscheduled(p *corev1.Pod) (PodProblem, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		if c.Reason == corev1.PodReasonSchedulingGated {
			return PodProblem{
				Kind: "scheduling", Why: strings.TrimSuffix("it has scheduling gates: "+gates(p), ": "), Change: "Whoever set the gates (a queue, for example) has to remove them.",
			}, true
		}
		if claim := missingClaim.FindStringSubmatch(c.Message); claim != nil {
			return PodProblem{
				Kind: "volume", Why: fmt.Sprintf("the persistent volume claim %q does not exist", claim[1]),
				Change: fmt.Sprintf("Create the persistent volume claim %q in the namespace %s: the scheduler tries again by itself.", claim[1], p.Namespace),
			}, true
		}
		return PodProblem{
			Kind: "scheduling", Why: strings.TrimSuffix(strings.TrimSuffix("no node takes it: "+c.Message, ": "), "."), Change: "Make room, add a node, or change what the pod template asks for in a new Job.",
		}, true
	}
	return PodProblem{}, false
}

func gates(p *corev1.Pod) string {
	var names []string
	for _, g := range p.Spec.SchedulingGates {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

// waitingContainer reads why a container does not run.
func waitingContainer(p *corev1.Pod) (PodProblem, bool) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting := s.State.Waiting
		if waiting == nil {
			continue
		}
		message := waiting.Reason
		if waiting.Message != "" {
			message += ": " + waiting.Message
		}
		if problem, ok := startProblem(&s, message); ok {
			return problem, true
		}
		switch waiting.Reason {
		case "CrashLoopBackOff":
			return PodProblem{
				Kind: "crash", Why: fmt.Sprintf("container %s failed %s in this pod%s, and waits before it is restarted", s.Name, times(s.RestartCount), lastExit(&s)),
				Change: fmt.Sprintf("kubectl logs %s -n %s -c %s --previous", p.Name, p.Namespace, s.Name),
			}, true
		case "", "ContainerCreating", "PodInitializing":
		default:
			return PodProblem{
				Kind: "starting", Why: fmt.Sprintf("a container%s does not start (%s)", named(" ", s.Name), message),
				Change: fmt.Sprintf("kubectl describe pod %s -n %s", p.Name, p.Namespace),
			}, true
		}
	}
	return PodProblem{}, false
}

// startProblem tells the problems that neverStarted knows.
func startProblem(s *corev1.ContainerStatus, message string) (PodProblem, bool) {
	reason := s.State.Waiting.Reason
	switch podcache.StartProblem(s.State.Waiting) {
	case jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE:
		if reason == "ImageVolumeMountFailed" {
			return PodProblem{
				Kind: "image", Why: fmt.Sprintf("an image that a container%s mounts as a volume cannot be mounted (%s)", named(" ", s.Name), message),
				Change: "Correct the image volume in the pod template of a new Job.",
			}, true
		}
		change := "Put the image there or fix the pull secret: the kubelet tries again by itself. For another image, create the Job anew."
		switch reason {
		case "InvalidImageName":
			change = "Correct the name of the image in the pod template of a new Job."
		case "ErrImageNeverPull":
			change = "Load the image on the node: the kubelet looks for it again by itself. Or leave out imagePullPolicy: Never in a new Job."
		}
		return PodProblem{
			Kind: "image", Why: fmt.Sprintf("the image%s%s cannot be pulled (%s)", named(" ", s.Image), named(" of container ", s.Name), message), Change: change,
		}, true
	case jobpolicyv1.PodStartProblem_POD_START_PROBLEM_SECURITY_CONTEXT:
		return PodProblem{
			Kind: "config", Why: fmt.Sprintf("a container%s would run as root, which runAsNonRoot forbids (%s)", named(" ", s.Name), message),
			Change: "Set runAsUser, or use an image that does not run as root, in a new Job.",
		}, true
	case jobpolicyv1.PodStartProblem_POD_START_PROBLEM_CONFIGURATION:
		if reason == "CreateContainerConfigError" {
			return PodProblem{
				Kind: "config", Why: fmt.Sprintf("a container%s lacks something that it refers to, such as a config map or secret (%s)", named(" ", s.Name), message),
				Change: "Create what the message names: the kubelet tries again by itself.",
			}, true
		}
		return PodProblem{
			Kind: "config", Why: fmt.Sprintf("a container%s cannot be started (%s)", named(" ", s.Name), message),
			Change: "Change the command or the settings in the pod template of a new Job.",
		}, true
	}
	return PodProblem{}, false
}

// named is a name with words before it. It is empty if the name is not known.
func named(before, name string) string {
	if name == "" {
		return ""
	}
	return before + name
}

func lastExit(s *corev1.ContainerStatus) string {
	if t := s.LastTerminationState.Terminated; t != nil {
		return ", last with " + exitCode(t)
	}
	return ""
}

// Reasons of events of the kubelet.
const (
	failedMount   = "FailedMount"
	failedAttach  = "FailedAttachVolume"
	failedSandbox = "FailedCreatePodSandBox"
)

// eventProblem reads what the kubelet says of a pod that has no running container.
func (w *work) eventProblem(p *corev1.Pod) (PodProblem, bool) {
	if p.Status.Phase == corev1.PodRunning {
		return PodProblem{}, false
	}
	events := w.PodEvents[p.Name]
	if e := volumeEvent(events); e != nil && !overcome(events, e) {
		return unmounted(p, e.Message), true
	}
	if e := latest(events, failedAttach); e != nil && !overcome(events, e) {
		change := "See where the volume is attached (kubectl get volumeattachments)."
		if strings.Contains(e.Message, "Multi-Attach error") {
			change += " Its access mode lets one node use it at a time: the pods there have to end, or the Job's pods have to run on that node, too."
		}
		return PodProblem{Kind: "volume", Why: "a volume cannot be attached to its node (" + e.Reason + ": " + e.Message + ")", Change: change}, true
	}
	if e := latest(events, failedSandbox); e != nil && !overcome(events, e) {
		return PodProblem{
			Kind: "sandbox", Why: "its node cannot set up the pod's sandbox, such as its network (" + e.Reason + ": " + e.Message + ")",
			Change: "See the node's container runtime and network plugin.",
		}, true
	}
	return PodProblem{}, false
}

// overcome reports whether the kubelet made progress after an event: it pulls images and
// starts containers only after the volumes are mounted and the sandbox exists.
func overcome(events []corev1.Event, e *corev1.Event) bool {
	for _, later := range []string{"Pulling", "Pulled", "Created", "Started"} {
		if l := latest(events, later); l != nil && !Seen(l).Before(Seen(e)) {
			return true
		}
	}
	return false
}

// sidecar finds a pod that does not end because one container still runs after the others
// have ended.
func sidecar(p *corev1.Pod) (PodProblem, bool) {
	var done, running []string
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
			done = append(done, s.Name)
		case s.State.Running != nil:
			running = append(running, s.Name)
		}
	}
	if len(done) == 0 || len(running) == 0 {
		return PodProblem{}, false
	}
	return PodProblem{
		Kind: "sidecar", Why: fmt.Sprintf("container %s is done, container %s still runs and keeps the pod open", strings.Join(done, ", "), strings.Join(running, ", ")),
		Change: "If that one is a sidecar, make it an init container with restartPolicy: Always in a new Job; it is stopped when the others are done.",
	}, true
}

// reasons are the reasons why pods cannot start, each once.
func (w *work) reasons() []string {
	var out []string
	for _, p := range w.Report.Pods {
		if slices.Contains(notStarting, p.Kind) && !slices.Contains(out, p.Why) && len(out) < 3 {
			out = append(out, p.Why)
		}
	}
	return out
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

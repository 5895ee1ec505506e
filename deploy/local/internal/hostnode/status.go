package hostnode

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// nodeIP is the address of the node and of every pod on it.
	nodeIP = "127.0.0.1"
	// imageID stands where a runtime reports the digest of an image; none is ever read here.
	imageID = "host-process"

	waitingCreating     = "ContainerCreating"
	waitingInitializing = "PodInitializing"
)

// verdict fails a pod for a reason that its containers do not show.
type verdict struct{ reason, message string }

// facts are all that a pod's status is made of.
type facts struct {
	// pod is the latest version of the object.
	pod *corev1.Pod
	// old is the status last made here, or at first the one in the API: transition times and a terminal phase carry over.
	old *corev1.PodStatus
	// containers are the records: init containers first, in the order of the spec.
	containers []*container
	// refused means that no container was or will be started: the status shows none.
	refused bool
	// over means that no container runs and none will be started again.
	over bool
	// verdict is nil unless the pod is failed from outside its containers.
	verdict *verdict
	// since is when the pod was taken up.
	since time.Time
	now   time.Time
}

// status builds the part of a pod's status that a kubelet owns. It leaves out what other components own: their
// conditions, the quality-of-service class, claim statuses.
func (f facts) status() *corev1.PodStatus {
	s := &corev1.PodStatus{
		ObservedGeneration: f.pod.Generation,
		HostIP:             nodeIP,
		HostIPs:            []corev1.HostIP{{IP: nodeIP}},
		PodIP:              nodeIP,
		PodIPs:             []corev1.PodIP{{IP: nodeIP}},
		StartTime:          seconds(f.since),
	}
	if !f.refused {
		s.InitContainerStatuses, s.ContainerStatuses = f.containerStatuses()
	}
	s.Phase, s.Reason, s.Message = f.phase()
	s.Conditions = f.conditions(s)
	return s
}

// phase never leaves a terminal phase, and does not enter one while a process runs.
func (f facts) phase() (phase corev1.PodPhase, reason, message string) {
	if terminal(f.old.Phase) {
		return f.old.Phase, f.old.Reason, f.old.Message
	}
	if f.over && f.verdict != nil {
		return corev1.PodFailed, f.verdict.reason, f.verdict.message
	}
	phase = count(f.containers, f.pod.Spec.RestartPolicy).phase(f.over)
	if !terminal(phase) || !slices.ContainsFunc(f.containers, (*container).alive) {
		return phase, "", ""
	}
	if f.old.Phase == "" {
		return corev1.PodPending, "", ""
	}
	return f.old.Phase, "", ""
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// containerStatuses keeps init containers in the order of the spec and sorts the others by name, as the kubelet does.
func (f facts) containerStatuses() (init, main []corev1.ContainerStatus) {
	unstarted := waitingCreating
	if len(f.pod.Spec.InitContainers) > 0 {
		unstarted = waitingInitializing
	}
	for _, c := range f.containers {
		if c.role == roleMain {
			main = append(main, c.status(unstarted))
			continue
		}
		init = append(init, c.status(unstarted))
	}
	if f.over {
		f.settle(init, main)
	}
	slices.SortFunc(main, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	return init, main
}

// settle gives a terminated state to every container that a pod which is over still shows as waiting, where the kubelet
// does (TerminatePod, v1.36): to all main containers once the pod was initialized, and to the init containers up to the
// last one that ran, but always to the first.
func (f facts) settle(init, main []corev1.ContainerStatus) {
	ran := 1
	for i, s := range init {
		if s.State.Waiting == nil {
			ran = i + 1
		}
	}
	for i := range min(ran, len(init)) {
		markUnknown(&init[i])
	}
	if len(f.incomplete()) > 0 {
		return
	}
	for i := range main {
		markUnknown(&main[i])
	}
}

func markUnknown(s *corev1.ContainerStatus) {
	if s.State.Terminated != nil {
		return
	}
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reasonStatusUnknown, Message: messageStatusUnknown, ExitCode: codeStatusUnknown,
	}}
}

// incomplete names the init containers that keep the main ones from starting: none once a main one has started.
func (f facts) incomplete() []string {
	if everStarted(f.containers) {
		return nil
	}
	var names []string
	for _, c := range f.containers {
		if c.role == roleInit && !c.succeeded() || c.role == roleSidecar && !c.alive() {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

func (c *container) status(unstarted string) corev1.ContainerStatus {
	running := c.alive()
	s := corev1.ContainerStatus{
		Name:         c.spec.Name,
		Image:        c.spec.Image,
		ImageID:      imageID,
		RestartCount: c.restarts,
		Started:      &running,
		Ready:        running && c.role != roleInit || c.role == roleInit && c.succeeded() && c.waiting == nil,
	}
	if c.current != nil {
		s.ContainerID = c.current.id
	}
	switch {
	case c.waiting != nil:
		s.State.Waiting = c.waiting
		s.LastTerminationState.Terminated = c.current.terminated()
	case c.current == nil:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: unstarted}
	default:
		s.State = c.current.state()
		s.LastTerminationState.Terminated = c.previous.terminated()
	}
	return s
}

func (r *run) state() corev1.ContainerState {
	if r.end == nil {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *seconds(r.started)}}
	}
	return corev1.ContainerState{Terminated: r.terminated()}
}

func (r *run) terminated() *corev1.ContainerStateTerminated {
	if r == nil || r.end == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{
		ExitCode:    r.end.code,
		Signal:      r.end.signal,
		Reason:      r.end.reason,
		Message:     r.end.message,
		StartedAt:   *seconds(r.started),
		FinishedAt:  *seconds(r.end.at),
		ContainerID: r.id,
	}
}

// seconds cuts a time to what the API keeps, so that a status compares equal to what the API server gives back.
func seconds(t time.Time) *metav1.Time {
	if t.IsZero() {
		return &metav1.Time{}
	}
	return new(metav1.NewTime(t.Truncate(time.Second)))
}

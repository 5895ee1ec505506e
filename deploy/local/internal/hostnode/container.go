package hostnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

const (
	// reasonStatusUnknown and messageStatusUnknown are the kubelet's for a container of which only its end is known.
	reasonStatusUnknown  = "ContainerStatusUnknown"
	messageStatusUnknown = "The container could not be located when the pod was terminated"
	codeStatusUnknown    = 137

	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
	// codeStartError is what containerd reports for a command that cannot be started.
	codeStartError = 128
)

// role says what part a container plays in its pod.
type role int

const (
	roleMain role = iota
	// roleInit is an init container that must succeed before the next one starts.
	roleInit
	// roleSidecar is an init container with restartPolicy Always.
	roleSidecar
)

// run is one execution of a container's command.
type run struct {
	// id is the container id of the status, scheme included.
	id string
	// attempt is the container's restart count when the run began; it numbers the log file.
	attempt int32
	started time.Time
	// process is nil when none was started, or when it belonged to an earlier life of the node.
	process *process
	// log is nil unless the run was started by this process.
	log *runLog
	// end is nil while the run is alive.
	end *runEnd
	// asked means that SIGTERM was sent.
	asked bool
}

// runEnd is how a run ended.
type runEnd struct {
	ending
	reason, message string
}

// container is the record of one container of a pod: enough to tell its status and what to do next.
type container struct {
	spec *corev1.Container
	role role
	// restarts is the restart count of the status: that of the current run.
	restarts int32
	// current is the latest run, previous the one before it; nil if there was none.
	current, previous *run
	// waiting is why the container is not running although it is to run (again); nil otherwise.
	waiting *corev1.ContainerStateWaiting
	// retryAt is when a start that could not be prepared is tried again.
	retryAt time.Time
	backoff crashBackoff
}

// newContainers lists the pod's containers: init containers first, each part in the order of the spec.
func newContainers(spec *corev1.PodSpec, backoff crashBackoff) []*container {
	var list []*container
	for i := range spec.InitContainers {
		c := &container{spec: &spec.InitContainers[i], role: roleInit, backoff: backoff}
		if p := c.spec.RestartPolicy; p != nil && *p == corev1.ContainerRestartPolicyAlways {
			c.role = roleSidecar
		}
		list = append(list, c)
	}
	for i := range spec.Containers {
		list = append(list, &container{spec: &spec.Containers[i], role: roleMain, backoff: backoff})
	}
	return list
}

func (c *container) alive() bool { return c.current != nil && c.current.end == nil }
func (c *container) ended() bool { return c.current != nil && c.current.end != nil }

// succeeded reports whether the latest run ended with exit code 0.
func (c *container) succeeded() bool { return c.ended() && c.current.end.code == 0 }

// restartsAfter reports whether the container is started again after a run that ended with code. An init container that
// succeeded is done.
func (c *container) restartsAfter(code int32, pod corev1.RestartPolicy) bool {
	if c.role == roleInit && code == 0 {
		return false
	}
	return podutil.ContainerShouldRestart(*c.spec, corev1.PodSpec{RestartPolicy: pod}, code)
}

// spent reports whether the container has ended and will not be started again.
func (c *container) spent(pod corev1.RestartPolicy) bool {
	return c.ended() && !c.restartsAfter(c.current.end.code, pod)
}

// notBefore is the earliest time of the next start.
func (c *container) notBefore() time.Time {
	if !c.ended() {
		return c.retryAt
	}
	return later(c.retryAt, c.backoff.until(c.current.end.at))
}

// nextAttempt numbers the next run.
func (c *container) nextAttempt() int32 {
	if c.current == nil {
		return c.restarts
	}
	return c.restarts + 1
}

// begin makes r the current run.
func (c *container) begin(r *run, now time.Time) {
	if c.ended() {
		c.backoff.restart(c.current.end.at, now)
		c.previous = c.current
	}
	c.restarts, c.current, c.waiting = r.attempt, r, nil
}

// finish notes that the current run is over.
func (r *run) finish(e ending, message string) {
	end := &runEnd{ending: e, reason: reasonCompleted}
	if e.code != 0 {
		end.reason, end.message = reasonError, message
	}
	r.end, r.process = end, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sooner returns the earlier of two times, where zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

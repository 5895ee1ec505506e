package simulate

import (
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Container is a container of the Job's pods, with the fields that decide what the
// kubelet does when it ends.
type Container struct {
	Name string
	// Init is true for an init container. One with the restart policy Always is a sidecar,
	// which runs until the other containers have ended.
	Init bool
	// RestartPolicy is the container's own: Always, OnFailure or Never. Empty: that of the
	// pod.
	RestartPolicy string
	// RestartRules go before the restart policy.
	RestartRules []RestartRule
}

// A RestartRule restarts a container that ended with one of the exit codes or, if Except is
// true, with any other one.
type RestartRule struct {
	Except    bool
	ExitCodes []int32
}

// The restart policies of a container.
const (
	restartAlways    = "Always"
	restartOnFailure = "OnFailure"
	restartNever     = "Never"
)

func (c *Container) sidecar() bool { return c.Init && c.RestartPolicy == restartAlways }

// Restarted says whether a container that ended with an exit code is started again
// (upstream ContainerShouldRestart; that init containers are not restarted after a success
// is in computeInitContainerActions; both v1.37).
func (c *Container) Restarted(exitCode int32, pod jobpolicyv1.RestartPolicy) bool {
	if c.Init && !c.sidecar() && exitCode == 0 {
		return false
	}
	if slices.ContainsFunc(c.RestartRules, func(r RestartRule) bool { return r.Except != slices.Contains(r.ExitCodes, exitCode) }) {
		return true
	}
	switch c.RestartPolicy {
	case restartAlways:
		return true
	case restartNever:
		return false
	}
	return exitCode != 0 && (c.RestartPolicy == restartOnFailure || pod == jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE)
}

// restartable says whether some exit code restarts the container.
func (c *Container) restartable(pod jobpolicyv1.RestartPolicy) bool {
	return len(c.RestartRules) > 0 || c.Restarted(1, pod)
}

// The kubelet's delay before it restarts a container.
const (
	restartDelay    = 10 * time.Second
	maxRestartDelay = 5 * time.Minute
)

// minGracePeriod is what the kubelet gives each container to end
// (minimumGracePeriodInSeconds, v1.37).
const minGracePeriod = 2 * time.Second

// Exit codes of containers that were stopped.
const (
	// exitTerminated: SIGTERM ended it.
	exitTerminated = 143
	// exitKilled: SIGKILL ended it, or it did not run when its pod was stopped.
	exitKilled = 137
)

// outOfMemory is the reason of a container that was killed because it needed more memory than it may use.
const outOfMemory = "OOMKilled"

// simContainer is a container of a simPod.
type simContainer struct {
	*Container
	state    containerState
	exitCode int32
	reason   string // why it ended, beside the exit code: outOfMemory or nothing
	restarts int32
	// delay is that of the last restart, and restartedAt its time.
	delay, restartedAt time.Duration
	// loops: it only restarts from now on, and the Job does not count that.
	loops bool
}

type containerState int

const (
	notStarted containerState = iota
	// unstartable: it waits for ever for its first start.
	unstartable
	running
	// restarting: it ended, and will be started again.
	restarting
	// done: it ended for good.
	done
)

// nextDelay is the delay before the next restart of a container that ends now. A run of
// more than twice the longest delay resets it (client-go's flowcontrol.Backoff).
func (c *simContainer) nextDelay(now time.Duration) time.Duration {
	switch {
	case c.restarts == 0 || now-c.restartedAt > 2*maxRestartDelay:
		return 0
	case c.delay == 0:
		return restartDelay
	}
	return min(2*c.delay, maxRestartDelay)
}

// next is what the kubelet does next with a pod (upstream computePodActions and getPhase,
// v1.37): it starts containers, or the pod is over.
func (pod *simPod) next() (start []*simContainer, over bool) {
	for _, c := range pod.containers {
		switch {
		case !c.Init:
			continue
		case c.state == notStarted:
			return []*simContainer{c}, false
		case c.state == unstartable:
			return nil, false
		case c.sidecar():
			continue
		case c.state != done:
			return nil, false
		case c.exitCode != 0:
			return nil, true
		}
	}
	over = true
	for _, c := range pod.containers {
		if c.Init {
			continue
		}
		if c.state == notStarted {
			start = append(start, c)
		}
		over = over && c.state == done
	}
	return start, over
}

// succeeded says whether all containers but the sidecars ended with exit code 0.
func (pod *simPod) succeeded() bool {
	return !slices.ContainsFunc(pod.containers, func(c *simContainer) bool {
		return !c.sidecar() && (c.state != done || c.exitCode != 0)
	})
}

// began says whether every container but the init containers was started: then the pod
// is no longer Pending.
func (pod *simPod) began() bool {
	return !slices.ContainsFunc(pod.containers, func(c *simContainer) bool {
		return !c.Init && (c.state == notStarted || c.state == unstartable)
	})
}

// allRun says whether the pod is ready.
func (pod *simPod) allRun() bool {
	return !slices.ContainsFunc(pod.containers, func(c *simContainer) bool {
		return (!c.Init || c.sidecar()) && c.state != running
	})
}

func (pod *simPod) anyRuns() bool {
	return slices.ContainsFunc(pod.containers, func(c *simContainer) bool { return c.state == running })
}

// halt ends the containers of a pod that is stopped. A container that waits for a restart
// keeps its exit code if the pod is being deleted; otherwise nobody knows it any more, as
// with a container that never ran (upstream TerminatePod, v1.37).
func (pod *simPod) halt(stopped int32) {
	initialized := !slices.ContainsFunc(pod.containers, func(c *simContainer) bool {
		return c.Init && !c.sidecar() && (c.state != done || c.exitCode != 0)
	})
	for _, c := range pod.containers {
		switch c.state {
		case running:
			c.exitCode = stopped
		case restarting:
			if !pod.deleting {
				c.exitCode = exitKilled
			}
		case notStarted, unstartable:
			if c.Init || !initialized {
				continue
			}
			c.exitCode = exitKilled
		}
		c.state = done
	}
}

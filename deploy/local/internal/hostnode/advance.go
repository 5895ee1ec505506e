package hostnode

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	waitingCrashLoop   = "CrashLoopBackOff"
	waitingConfigError = "CreateContainerConfigError"
)

// advance starts every container that is due: init containers one after another, then the main ones together. It sets
// w.stop when no main container will run again, or an init container has failed for good. The result is when to look
// again; zero if only the end of a process can change anything.
func (w *podWorker) advance(ctx context.Context, now time.Time) (next time.Time) {
	if !w.prepared {
		if err := w.runner.prepare(ctx, w.pod); err != nil {
			w.logger.Warn("pod directories were not made", "uid", w.pod.UID, "error", err)
			return now.Add(w.backoff.base)
		}
		w.prepared = true
	}
	next, ready := w.initialize(ctx, now)
	if !ready {
		return next
	}
	working := false
	for _, c := range w.containers {
		if c.role != roleMain {
			continue
		}
		next = sooner(next, w.ensure(ctx, c, now))
		working = working || !c.spent(w.pod.Spec.RestartPolicy)
	}
	if !working {
		w.stopFor(causeFinished, w.deadlineOf(now))
	}
	return next
}

// initialize brings up the init containers and reports whether the main ones may start. Once any of those has, only
// sidecars are looked after.
func (w *podWorker) initialize(ctx context.Context, now time.Time) (next time.Time, ready bool) {
	initialized := everStarted(w.containers)
	for _, c := range w.containers {
		if c.role == roleMain || c.role == roleInit && (initialized || c.succeeded()) {
			continue
		}
		if c.role == roleInit && c.spent(w.pod.Spec.RestartPolicy) {
			w.stopFor(causeInitFailed, w.deadlineOf(now))
			return time.Time{}, false
		}
		next = sooner(next, w.ensure(ctx, c, now))
		if !initialized && (c.role == roleInit || !c.alive()) {
			return next, false
		}
	}
	return next, true
}

// ensure starts a container unless it runs, will not run again, or has to wait. It returns when to come back.
func (w *podWorker) ensure(ctx context.Context, c *container, now time.Time) time.Time {
	if c.alive() || c.spent(w.pod.Spec.RestartPolicy) {
		return time.Time{}
	}
	if at := c.notBefore(); at.After(now) {
		if c.waiting == nil {
			w.backOff(c)
		}
		return at
	}
	return w.start(ctx, c, now)
}

func (w *podWorker) backOff(c *container) {
	c.waiting = &corev1.ContainerStateWaiting{
		Reason: waitingCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			c.backoff.delay, c.spec.Name, w.pod.Name, w.pod.Namespace, w.pod.UID),
	}
	w.events.warn(w.pod, c.spec.Name, "BackOff",
		fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.spec.Name, w.pod.Name, w.pod.Namespace, w.pod.UID))
}

func (w *podWorker) start(ctx context.Context, c *container, now time.Time) time.Time {
	r, err := w.runner.start(ctx, w.pod, c, func(r *run, e ending, message string) { w.ends <- endedRun{r, e, message} })
	if err != nil {
		c.retryAt = now.Add(w.backoff.base)
		c.waiting = &corev1.ContainerStateWaiting{Reason: waitingConfigError, Message: err.Error()}
		w.events.warn(w.pod, c.spec.Name, "Failed", "Error: "+err.Error())
		return c.retryAt
	}
	c.begin(r, now)
	if c.ended() {
		w.events.warn(w.pod, c.spec.Name, "Failed", "Error: "+r.end.message)
		return now // whatever follows from the end is due now
	}
	w.events.note(w.pod, c.spec.Name, "Started", "Container started")
	return time.Time{}
}

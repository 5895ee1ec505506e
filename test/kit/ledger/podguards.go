package ledger

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The guards of releases and deletions by controllers. Whether the pod is as its writer has seen it shows in what is stored: a
// pod that has ended, or that another Job has created under its name, is not one that the writer meant.

// releasedWanted: a pod that has not ended is released only if it is accounted for, or if something wants it to end.
func (c *change) releasedWanted() []finding {
	if !c.controller || !c.releasesRunning() || c.disowns() || c.mayEnd() || c.accountedFor() {
		return nil
	}
	pod := c.last()
	// A pod whose deletion is overdue has failed for such a Job, and its policy may ignore that.
	if pod.DeletionTimestamp != nil && c.owner().Spec.PodFailurePolicy != nil && c.anyJob(func(p *jobPast) bool { return p.givesUp }) {
		return nil
	}
	return found(pod.UID, "pod %s (%s): %s", pod.Name, pod.Status.Phase, Describe(c.owner()))
}

// releasedForeign: a pod keeps its finalizer if it never was without a controller, or had a Job as its controller.
func (c *change) releasedForeign() []finding {
	past := c.past()
	if !c.controller || !c.releasesOrphan() || past.loose || past.ofJob {
		return nil
	}
	return found(c.last().UID, "pod %s of %s", c.last().Name, controllerOf(c.wasPod))
}

// deletedHeld: a pod that a Job controls is deleted with its finalizer only after the verdict is written, because the deletion may count as
// a failure. A pod may get the finalizer back between its release and its deletion. One that does not start is to count.
func (c *change) deletedHeld() []finding {
	if !c.deletesOfJob() || !Held(c.wasPod) || c.past().putBack || c.anyJob(func(p *jobPast) bool { return p.declared || p.gone || p.endsUnstarted }) {
		return nil
	}
	return found(c.wasPod.UID, "pod %s (%s)", c.wasPod.Name, c.wasPod.Status.Phase)
}

// deletedWanted: something wants a pod to end that has not.
func (c *change) deletedWanted() []finding {
	if !c.deletesOfJob() || Held(c.wasPod) || Ended(c.wasPod) || c.mayEnd() {
		return nil
	}
	return found(c.wasPod.UID, "pod %s (%s)", c.wasPod.Name, c.wasPod.Status.Phase)
}

// deletedEnded: a pod that has ended stays with its logs, unless something wanted it to end before that, or its Job keeps few
// finished pods.
func (c *change) deletedEnded() []finding {
	if !c.deletesOfJob() || Held(c.wasPod) || !Ended(c.wasPod) || c.mayEnd() || c.prunes() {
		return nil
	}
	return found(c.wasPod.UID, "pod %s (%s)", c.wasPod.Name, c.wasPod.Status.Phase)
}

// deletedUncounted: of the finished pods that a Job does not keep, only counted ones are deleted. One whose finalizer came back is to count again.
func (c *change) deletedUncounted() []finding {
	if !c.deletesOfJob() || !Ended(c.wasPod) || !c.prunes() || c.mayEnd() || c.past().putBack {
		return nil
	}
	job := c.owner()
	if job == nil || uncounted(job)[c.wasPod.UID] == "" {
		return nil
	}
	return found(c.wasPod.UID, "pod %s: %s", c.wasPod.Name, Describe(job))
}

// deletedForeign: executors delete no pod that no Job ever controlled, by its owner reference.
func (c *change) deletedForeign() []finding {
	if !c.controller || !c.deletes() || c.past().ofJob {
		return nil
	}
	return found(c.wasPod.UID, "pod %s of %q", c.wasPod.Name, controllerOf(c.wasPod))
}

func (c *change) deletesOfJob() bool { return c.controller && c.deletes() && len(c.past().jobs) > 0 }

// anyJob reports whether something is so of any Job that ever controlled the pod.
func (c *change) anyJob(is func(*jobPast) bool) bool { return slices.ContainsFunc(c.past().jobs, is) }

func (c *change) prunes() bool { return c.anyJob(func(p *jobPast) bool { return p.prunes }) }

// mayEnd reports whether anything that was ever stored wants the pod to end, or to be let go, although it does not end by itself.
func (c *change) mayEnd() bool {
	return c.past().astray || c.anyJob(func(p *jobPast) bool { return p.mayEnd(c.wasPod) })
}

// accountedFor reports whether a stored status of any Job that ever controlled the pod has listed it, or its index is done.
func (c *change) accountedFor() bool {
	pod, job := c.last(), c.owner()
	listed := c.anyJob(func(p *jobPast) bool { return p.recorded[pod.UID] })
	return listed || job != nil && IsIndexed(job) && (completedIndex(job, pod) || failedIndex(job, pod))
}

// past is what was stored of the pod before this change.
func (c *change) past() *podPast { return c.book.podPastOf(c.last().UID) }

func isJobReference(o metav1.OwnerReference) bool {
	return o.Controller != nil && *o.Controller && o.Kind == "Job" && strings.HasPrefix(o.APIVersion, batchv1.GroupName+"/")
}

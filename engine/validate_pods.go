package engine

import (
	"fmt"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func (c *checker) pods(p *jobpolicyv1.PodSummary) {
	c.notNegative("pods.active", int64(p.GetActive()))
	c.notNegative("pods.terminating", int64(p.GetTerminating()))
	c.notNegative("pods.restarts", p.GetRestarts())
	c.between("pods.ready", int64(p.GetReady()), 0, int64(p.GetActive()))
	c.between("pods.tracked_active", int64(p.GetTrackedActive()), 0, int64(p.GetActive()))
	active := c.indexSet("pods.active_indexes", p.GetActiveIndexes())
	c.require(active.Len() <= int64(p.GetActive()), "pods.active_indexes",
		"must not have more indexes than pods.active (%d), has %d", p.GetActive(), active.Len())
	terminating := c.indexSet("pods.terminating_indexes", p.GetTerminatingIndexes())
	c.require(terminating.Len() <= int64(p.GetTerminating()), "pods.terminating_indexes",
		"must not have more indexes than pods.terminating (%d), has %d", p.GetTerminating(), terminating.Len())
}

func (c *checker) rows(req *jobpolicyv1.DecideJobRequest) {
	unaccounted, active := req.GetUnaccountedPods(), req.GetActivePods()
	if !c.length("unaccounted_pods", len(unaccounted), maxRows) ||
		!c.length("active_pods.pods", len(active.GetPods()), maxRows) ||
		!c.length("confirmed_releases", len(req.GetConfirmedReleases()), 2*maxRows) {
		return
	}
	seen := make(map[string]bool, len(unaccounted)+len(active.GetPods()))
	for i, pod := range unaccounted {
		if c.full() {
			return
		}
		c.unaccountedPod(fmt.Sprintf("unaccounted_pods[%d].", i), pod, seen)
	}
	for i, pod := range active.GetPods() {
		if c.full() {
			return
		}
		c.activePod(fmt.Sprintf("active_pods.pods[%d].", i), pod, seen)
	}
	c.rowCounts(req)
	for i, uid := range req.GetConfirmedReleases() {
		if c.full() {
			return
		}
		field := fmt.Sprintf("confirmed_releases[%d]", i)
		c.uid(field, uid)
		c.require(!seen[string(uid)], field,
			"contradicts a row of the same UID: a pod whose release is confirmed has no finalizer left")
	}
}

// rowCounts checks the rows against the counts of PodSummary.
func (c *checker) rowCounts(req *jobpolicyv1.DecideJobRequest) {
	terminating := 0
	for _, pod := range req.GetUnaccountedPods() {
		if !terminal(pod.GetPhase()) {
			terminating++
		}
	}
	c.require(terminating <= int(req.GetPods().GetTerminating()), "unaccounted_pods",
		"has %d pods that are being deleted, more than pods.terminating (%d)", terminating, req.GetPods().GetTerminating())
	active := req.GetActivePods()
	if active == nil {
		return
	}
	counts := req.GetPods()
	listed := int32(len(active.GetPods()))
	c.require(listed == counts.GetActive() || (active.GetTruncated() && listed < counts.GetActive()), "active_pods.pods",
		"must have pods.active (%d) rows, or fewer with truncated set, has %d", counts.GetActive(), listed)
}

func (c *checker) unaccountedPod(at string, pod *jobpolicyv1.UnaccountedPod, seen map[string]bool) {
	c.rowUID(at+"uid", pod.GetUid(), seen)
	enum(c, at+"phase", pod.GetPhase(), jobpolicyv1.PodPhase_name, false)
	c.require(terminal(pod.GetPhase()) || pod.GetDeleting(), at+"deleting",
		"must be true for a pod in phase %s: a pod that neither finished nor is being deleted is active", pod.GetPhase())
	c.index(at+"index", pod.Index)
	c.requiredTime(at+"finished_time", pod.GetFinishedTime())
	c.notNegative(at+"index_failure_count", int64(pod.GetIndexFailureCount()))
	c.notNegative(at+"index_ignored_failure_count", int64(pod.GetIndexIgnoredFailureCount()))
	c.failure(at+"failure", pod.GetFailure())
}

func (c *checker) failure(field string, f *jobpolicyv1.PodFailure) {
	c.bytesBetween(field+".pod_name", f.GetPodName(), 0, maxNameBytes)
	if c.length(field+".container_exits", len(f.GetContainerExits()), maxContainerExits) {
		for i, exit := range f.GetContainerExits() {
			at := fmt.Sprintf("%s.container_exits[%d].", field, i)
			c.bytesBetween(at+"container_name", exit.GetContainerName(), 0, maxNameBytes)
			c.require(exit.GetExitCode() != 0, at+"exit_code", "must not be 0: only failed containers are listed")
		}
	}
	c.patterns(field+".conditions", f.GetConditions(), maxConditions)
}

func (c *checker) activePod(at string, pod *jobpolicyv1.ActivePod, seen map[string]bool) {
	c.rowUID(at+"uid", pod.GetUid(), seen)
	enum(c, at+"phase", pod.GetPhase(), jobpolicyv1.PodPhase_name, false)
	c.require(!terminal(pod.GetPhase()), at+"phase", "must not be terminal for an active pod, is %s", pod.GetPhase())
	c.index(at+"index", pod.Index)
	c.optionalTime(at+"ready_since", pod.GetReadySince())
	c.optionalTime(at+"created_time", pod.GetCreatedTime())
	c.notNegative(at+"max_restarts", int64(pod.GetMaxRestarts()))
	c.notNegative(at+"max_sidecar_restarts", int64(pod.GetMaxSidecarRestarts()))
}

func (c *checker) rowUID(field string, uid []byte, seen map[string]bool) {
	if c.uid(field, uid) {
		c.require(!seen[string(uid)], field, "is a duplicate: each pod may have one row")
		seen[string(uid)] = true
	}
}

func (c *checker) index(field string, index *int32) {
	if index != nil {
		c.between(field, int64(*index), 0, 1<<31-2)
	}
}

func (c *checker) unlisted(u *jobpolicyv1.UnlistedPods) {
	c.notNegative("unlisted_pods.succeeded", int64(u.GetSucceeded()))
	c.notNegative("unlisted_pods.failed", int64(u.GetFailed()))
	set := c.indexSet("unlisted_pods.succeeded_indexes", u.GetSucceededIndexes())
	c.require(set.Len() <= int64(u.GetSucceeded()), "unlisted_pods.succeeded_indexes",
		"must not have more indexes than unlisted_pods.succeeded (%d), has %d", u.GetSucceeded(), set.Len())
}

// terminal reports whether a pod in this phase has ended for good.
func terminal(phase jobpolicyv1.PodPhase) bool {
	return phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

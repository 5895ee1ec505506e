package engine

import (
	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/internal/check"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func (c checker) pods(p *jobpolicyv1.PodSummary) {
	c.NotNegative("pods.active", int64(p.GetActive()))
	c.NotNegative("pods.terminating", int64(p.GetTerminating()))
	c.NotNegative("pods.restarts", p.GetRestarts())
	c.Between("pods.ready", int64(p.GetReady()), 0, int64(p.GetActive()))
	c.Between("pods.tracked_active", int64(p.GetTrackedActive()), 0, int64(p.GetActive()))
	c.indexesOf("pods.active", p.GetActive(), "pods.active_indexes", p.GetActiveIndexes())
	c.indexesOf("pods.terminating", p.GetTerminating(), "pods.terminating_indexes", p.GetTerminatingIndexes())
}

func (c checker) rows(req *jobpolicyv1.DecideJobRequest) {
	unaccounted, active := req.GetUnaccountedPods(), req.GetActivePods()
	if !c.Length("unaccounted_pods", len(unaccounted), maxRows) ||
		!c.Length("active_pods.pods", len(active.GetPods()), maxRows) ||
		!c.Length("confirmed_releases", len(req.GetConfirmedReleases()), maxReleases) {
		return
	}
	seen := newUIDs(len(unaccounted) + len(active.GetPods()))
	check.Each(c.Checker, "unaccounted_pods", maxRows, unaccounted, func(pod *jobpolicyv1.UnaccountedPod) { c.unaccountedPod(pod, seen) })
	unstarted := c.unstartedPods(req, seen)
	check.Each(c.Checker, "active_pods.pods", maxRows, active.GetPods(), func(pod *jobpolicyv1.ActivePod) { c.activePod(pod, seen) })
	c.rowCounts(req)
	check.Each(c.Checker, "confirmed_releases", maxReleases, req.GetConfirmedReleases(), func(uid []byte) {
		if c.uid("", uid) {
			c.Require(!seen.has(uid) && !unstarted.has(uid), "",
				"contradicts a row of the same UID: a pod whose release is confirmed has no finalizer left")
		}
	})
}

func (c checker) terminatingPods(req *jobpolicyv1.DecideJobRequest) {
	pods := req.GetTerminatingPods()
	if !c.Length("terminating_pods", len(pods), maxRows) {
		return
	}
	c.Require(len(pods) <= int(req.GetPods().GetTerminating()), "terminating_pods",
		"has %d pods, more than pods.terminating (%d)", len(pods), req.GetPods().GetTerminating())
	seen := newUIDs(len(pods))
	check.Each(c.Checker, "terminating_pods", maxRows, pods, func(pod *jobpolicyv1.TerminatingPod) {
		if !c.Require(pod != nil, "", "is required") {
			return
		}
		c.rowUID(pod.GetUid(), seen)
		c.BytesBetween("pod_name", pod.GetPodName(), 0, check.MaxNameBytes)
		c.index(pod.Index)
		c.RequiredTime("due_time", pod.GetDueTime())
	})
}

func (c checker) finishedPods(f *jobpolicyv1.FinishedPods) {
	if !c.Length("finished_pods.first", len(f.GetFirst()), maxRows) {
		return
	}
	seen, listed := newUIDs(len(f.GetFirst())), map[jobpolicyv1.PodPhase]int{}
	check.Each(c.Checker, "finished_pods.first", maxRows, f.GetFirst(), func(pod *jobpolicyv1.FinishedPod) {
		if !c.Require(pod != nil, "", "is required") {
			return
		}
		c.rowUID(pod.GetUid(), seen)
		c.Require(terminal(pod.GetPhase()), "phase", "must be SUCCEEDED or FAILED, is %s", pod.GetPhase())
		c.index(pod.Index)
		c.RequiredTime("finished_time", pod.GetFinishedTime())
		listed[pod.GetPhase()]++
	})
	c.Require(listed[jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED] <= int(f.GetSucceeded()), "finished_pods.succeeded",
		"must not be less than the pods of this phase in first, is %d", f.GetSucceeded())
	c.Require(listed[jobpolicyv1.PodPhase_POD_PHASE_FAILED] <= int(f.GetFailed()), "finished_pods.failed",
		"must not be less than the pods of this phase in first, is %d", f.GetFailed())
}

// unstartedPods checks the rows of pods that do not start. Such a pod may also have a row of an active pod, but
// none of the unaccounted ones.
func (c checker) unstartedPods(req *jobpolicyv1.DecideJobRequest, unaccounted uids) uids {
	pods := req.GetUnstartedPods()
	seen := newUIDs(len(pods))
	c.Require(len(pods) <= int(req.GetPods().GetActive()), "unstarted_pods",
		"has %d pods, more than pods.active (%d)", len(pods), req.GetPods().GetActive())
	check.Each(c.Checker, "unstarted_pods", maxUnstarted, pods, func(pod *jobpolicyv1.ActivePod) {
		c.activePod(pod, seen)
		c.Require(!unaccounted.has(pod.GetUid()), "uid", "has a row in unaccounted_pods, too: such a pod is not active")
		c.Require(pod.GetStart().GetProblem() != 0, "start.problem", "is required")
		c.RequiredTime("start.since", pod.GetStart().GetSince())
	})
	return seen
}

// rowCounts checks the rows against the counts of PodSummary.
func (c checker) rowCounts(req *jobpolicyv1.DecideJobRequest) {
	terminating := 0
	for _, pod := range req.GetUnaccountedPods() {
		if !terminal(pod.GetPhase()) {
			terminating++
		}
	}
	c.Require(terminating <= int(req.GetPods().GetTerminating()), "unaccounted_pods",
		"has %d pods that are being deleted, more than pods.terminating (%d)", terminating, req.GetPods().GetTerminating())
	active := req.GetActivePods()
	if active == nil {
		return
	}
	counts := req.GetPods()
	listed := int32(len(active.GetPods()))
	c.Require(listed == counts.GetActive() || (active.GetTruncated() && listed < counts.GetActive()), "active_pods.pods",
		"must have pods.active (%d) rows, or fewer with truncated set, has %d", counts.GetActive(), listed)
}

func (c checker) unaccountedPod(pod *jobpolicyv1.UnaccountedPod, seen uids) {
	if !c.Require(pod != nil, "", "is required") {
		return
	}
	c.rowUID(pod.GetUid(), seen)
	c.Require(pod.GetPhase() != 0, "phase", "is required")
	if !terminal(pod.GetPhase()) && !pod.GetDeleting() {
		c.Violated("deleting", "must be true for a pod in phase %s: a pod that neither finished nor is being deleted is active",
			pod.GetPhase())
	}
	c.index(pod.Index)
	c.RequiredTime("finished_time", pod.GetFinishedTime())
	c.NotNegative("index_failure_count", int64(pod.GetIndexFailureCount()))
	c.NotNegative("index_ignored_failure_count", int64(pod.GetIndexIgnoredFailureCount()))
	c.Within("failure")
	c.failure(pod.GetFailure())
	c.Leave()
}

func (c checker) failure(f *jobpolicyv1.PodFailure) {
	c.BytesBetween("pod_name", f.GetPodName(), 0, check.MaxNameBytes)
	c.exits(f.GetContainerExits())
	c.patterns("conditions", f.GetConditions(), maxConditions)
	c.BytesBetween("reason", f.GetReason(), 0, check.MaxNameBytes)
	c.start(f.GetStart())
	c.Between("resource_step", int64(f.GetResourceStep()), 0, maxResourceStep)
}

func (c checker) exits(exits []*jobpolicyv1.ContainerExit) {
	if !c.Length("container_exits", len(exits), maxContainerExits) {
		return
	}
	// Not by each: a request may have millions of exits, for which its calls take measurable time.
	for i, exit := range exits {
		c.Enter("container_exits", i)
		c.exit(exit)
		c.Leave()
	}
}

func (c checker) exit(exit *jobpolicyv1.ContainerExit) {
	c.BytesBetween("container_name", exit.GetContainerName(), 0, check.MaxNameBytes)
	c.Require(exit.GetExitCode() != 0, "exit_code", "must not be 0: only failed containers are listed")
	c.BytesBetween("reason", exit.GetReason(), 0, check.MaxNameBytes)
	c.BytesBetween("termination_message", exit.GetTerminationMessage(), 0, jobend.MaxLineBytes)
}

func (c checker) activePod(pod *jobpolicyv1.ActivePod, seen uids) {
	if !c.Require(pod != nil, "", "is required") {
		return
	}
	c.rowUID(pod.GetUid(), seen)
	c.Require(pod.GetPhase() != 0, "phase", "is required")
	if terminal(pod.GetPhase()) {
		c.Violated("phase", "must not be terminal for an active pod, is %s", pod.GetPhase())
	}
	c.index(pod.Index)
	c.OptionalTime("ready_since", pod.GetReadySince())
	c.OptionalTime("created_time", pod.GetCreatedTime())
	c.NotNegative("max_restarts", int64(pod.GetMaxRestarts()))
	c.NotNegative("max_sidecar_restarts", int64(pod.GetMaxSidecarRestarts()))
	c.lastExit(pod)
	c.start(pod.GetStart())
	c.OptionalTime("start_time", pod.GetStartTime())
	c.NotNegative("active_deadline_seconds", pod.GetActiveDeadlineSeconds())
	c.NotNegative("grace_period_seconds", pod.GetGracePeriodSeconds())
}

func (c checker) start(start *jobpolicyv1.PodStart) {
	c.BytesBetween("start.reason", start.GetReason(), 0, check.MaxNameBytes)
	c.OptionalTime("start.since", start.GetSince())
}

func (c checker) lastExit(pod *jobpolicyv1.ActivePod) {
	c.BytesBetween("pod_name", pod.GetPodName(), 0, check.MaxNameBytes)
	c.OptionalTime("last_exit_time", pod.GetLastExitTime())
	if pod.GetLastExit() != nil {
		c.Within("last_exit")
		c.exit(pod.GetLastExit())
		c.Leave()
	}
}

func (c checker) rowUID(uid []byte, seen uids) {
	if c.uid("uid", uid) {
		c.Require(!seen.has(uid), "uid", "is a duplicate: each pod may have one row")
		seen.add(uid)
	}
}

func (c checker) index(index *int32) {
	if index != nil {
		c.Between("index", int64(*index), 0, indexset.Max)
	}
}

func (c checker) unlisted(u *jobpolicyv1.UnlistedPods) {
	c.NotNegative("unlisted_pods.succeeded", int64(u.GetSucceeded()))
	c.NotNegative("unlisted_pods.failed", int64(u.GetFailed()))
	c.Between("unlisted_pods.terminating", int64(u.GetTerminating()), 0, int64(max(0, u.GetFailed())))
	c.indexesOf("unlisted_pods.succeeded", u.GetSucceeded(), "unlisted_pods.succeeded_indexes", u.GetSucceededIndexes())
	c.indexesOf("unlisted_pods.failed", u.GetFailed(), "unlisted_pods.failed_indexes", u.GetFailedIndexes())
}

// terminal reports whether a pod in this phase has ended for good.
func terminal(phase jobpolicyv1.PodPhase) bool {
	return phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

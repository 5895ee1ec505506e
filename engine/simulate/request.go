package simulate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func (p *player) at(d time.Duration) *timestamppb.Timestamp { return timestamp.Of(p.sc.Start.Add(d)) }

// request is the snapshot of this moment.
func (p *player) request(activeRows bool) *jobpolicyv1.DecideJobRequest {
	req := &jobpolicyv1.DecideJobRequest{
		Now: p.at(p.now), Job: p.job, Spec: p.spec, Status: p.status, Settings: p.sc.Settings, Retry: p.retry,
		Pods: &jobpolicyv1.PodSummary{}, ConfirmedReleases: p.confirmed(),
	}
	if activeRows {
		req.ActivePods = &jobpolicyv1.ActivePods{}
	}
	var active, terminating []int32
	for _, pod := range p.pods {
		switch {
		case pod.active():
			p.countActive(req, pod)
			active = appendIndex(active, pod)
		case !pod.ended():
			req.Pods.Terminating++
			terminating = appendIndex(terminating, pod)
		}
		if pod.phase == jobpolicyv1.PodPhase_POD_PHASE_RUNNING || pod.phase == jobpolicyv1.PodPhase_POD_PHASE_PENDING {
			for _, c := range pod.containers {
				req.Pods.Restarts += int64(c.restarts)
			}
		}
		if pod.tracked && !pod.active() {
			req.UnaccountedPods = append(req.UnaccountedPods, p.unaccounted(pod))
		}
	}
	if p.sc.indexed() {
		req.Pods.ActiveIndexes = indexMessage(active)
		req.Pods.TerminatingIndexes = indexMessage(terminating)
	}
	return req
}

func (p *player) countActive(req *jobpolicyv1.DecideJobRequest, pod *simPod) {
	req.Pods.Active++
	if pod.ready {
		req.Pods.Ready++
	}
	if pod.tracked {
		req.Pods.TrackedActive++
	}
	if req.ActivePods == nil {
		return
	}
	row := &jobpolicyv1.ActivePod{
		Uid: pod.uid, Phase: pod.phase, Index: pod.index, Tracked: pod.tracked, Ready: pod.ready,
		Scheduled: pod.life.Started != nil, CreatedTime: p.at(pod.life.Created),
	}
	for _, c := range pod.containers {
		row.MaxRestarts = max(row.MaxRestarts, c.restarts)
		if c.sidecar() {
			row.MaxSidecarRestarts = max(row.MaxSidecarRestarts, c.restarts)
		}
	}
	if pod.ready {
		row.ReadySince = p.at(pod.readySince)
	}
	req.ActivePods.Pods = append(req.ActivePods.Pods, row)
}

func (p *player) unaccounted(pod *simPod) *jobpolicyv1.UnaccountedPod {
	row := &jobpolicyv1.UnaccountedPod{
		Uid: pod.uid, Phase: pod.phase, Deleting: pod.deleting, Index: pod.index, FinishedTime: p.at(pod.finished),
		IndexFailureCount: pod.failures, IndexIgnoredFailureCount: pod.ignored,
	}
	if pod.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED {
		row.Failure = pod.failure()
	}
	return row
}

// confirmed are the recorded pods that no longer hold the finalizer.
func (p *player) confirmed() [][]byte {
	var uids [][]byte
	for _, list := range [][][]byte{p.status.GetUncounted().GetSucceeded(), p.status.GetUncounted().GetFailed()} {
		for _, uid := range list {
			if !p.tracked[string(uid)] {
				uids = append(uids, uid)
			}
		}
	}
	return uids
}

func appendIndex(indexes []int32, pod *simPod) []int32 {
	if pod.index == nil {
		return indexes
	}
	return append(indexes, *pod.index)
}

func indexMessage(indexes []int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for _, r := range indexset.Of(indexes...).Ranges() {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: r.First, Last: r.Last})
	}
	return set
}

// prune forgets pods that neither run nor have to be counted.
func (p *player) prune() {
	p.pods = slices.DeleteFunc(p.pods, func(pod *simPod) bool { return pod.ended() && !pod.tracked })
}

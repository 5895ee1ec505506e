package engine_test

import (
	"bytes"
	"cmp"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Finished pods of the model are deleted if their Job keeps few. The executor of the model remembers nothing, so
// each decision is one after a restart; the checks know the deleted pods, too.

// finishedPods are the pods of a phase that are accounted for as far as the executor sees, first those that finished first.
func (c *cluster) finishedPods(phase jobpolicyv1.PodPhase) []*modelPod {
	pods := c.podsThat(func(p *modelPod) bool { return !p.gone && p.seen && p.phase == phase && !p.holds() && !p.deleting })
	slices.SortFunc(pods, func(a, b *modelPod) int {
		return cmp.Or(a.finished.Compare(b.finished), bytes.Compare(a.uid, b.uid))
	})
	return pods
}

func (c *cluster) observeFinished(req *jobpolicyv1.DecideJobRequest) {
	keep := c.spec.GetOptions().GetKeepFinishedPods()
	if keep == nil {
		return
	}
	succeeded, failed := c.finishedPods(jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED), c.finishedPods(jobpolicyv1.PodPhase_POD_PHASE_FAILED)
	req.FinishedPods = &jobpolicyv1.FinishedPods{Succeeded: int32(len(succeeded)), Failed: int32(len(failed))}
	list := func(pods []*modelPod, keep *int32) {
		if keep == nil {
			return
		}
		for _, p := range pods[:max(0, len(pods)-int(*keep))] {
			req.FinishedPods.First = append(req.FinishedPods.First, &jobpolicyv1.FinishedPod{
				Uid: p.uid, Phase: p.phase, Index: p.index, FinishedTime: timestamppb.New(p.finished),
			})
		}
	}
	list(succeeded, keep.Succeeded)
	list(failed, keep.Failed)
}

// checkDeleteFinished checks that a Job that goes on deletes only pods that are counted, and keeps those that finished last.
func (c *cluster) checkDeleteFinished(uids [][]byte) {
	if len(uids) > 0 && (is(c.status, criteriaMet) || is(c.status, failureTarget) || c.spec.GetDeleting()) {
		c.t.Fatal("deletes finished pods of a Job that ends")
	}
	uncounted, keep := c.status.GetUncounted(), c.spec.GetOptions().GetKeepFinishedPods()
	for _, uid := range uids {
		p := c.pod(uid)
		if p.gone || !p.terminal() || p.tracked || contains(uncounted.GetSucceeded(), uid) || contains(uncounted.GetFailed(), uid) {
			c.t.Fatalf("deletes pod %s, which is not a finished pod that is counted", uidName(uid))
		}
		most := keep.GetSucceeded()
		if p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED {
			most = keep.GetFailed()
		}
		later := c.podsThat(func(q *modelPod) bool { return !q.gone && q.phase == p.phase && !q.finished.Before(p.finished) })
		if len(later)-1 < int(most) {
			c.t.Fatalf("deletes pod %s, and only %d finished after it", uidName(uid), len(later)-1)
		}
	}
}

func (c *cluster) deleteFinished(uids [][]byte) {
	for _, uid := range uids {
		if !c.goesWrong("deletion of a finished pod refused") {
			p := c.pod(uid)
			p.gone, p.pruned = true, true
		}
	}
}

// checkKept checks that a Job which has nothing to do keeps no more pods than it has to.
func (c *cluster) checkKept() {
	keep := c.spec.GetOptions().GetKeepFinishedPods()
	if keep == nil || isFinished(c.status) || c.spec.GetDeleting() {
		return
	}
	if n := len(c.finishedPods(jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED)); keep.Succeeded != nil && n > max(1, int(keep.GetSucceeded())) {
		c.t.Fatalf("%d pods that succeeded stay, want %d", n, keep.GetSucceeded())
	}
}

package engine_test

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Pods of the model that are being deleted may end late, or not before their Job does: their node is lost.

// beginDeletion asks for a pod's deletion, with a grace period of 30 seconds.
func (c *cluster) beginDeletion(p *modelPod) {
	p.deleting, p.ready, p.finished, p.due = true, false, c.now, c.now.Add(30*time.Second)
}

func (c *cluster) observeTermination(req *jobpolicyv1.DecideJobRequest, p *modelPod) {
	if c.spec.GetOptions().GetTerminationDeadlineSeconds() > 0 {
		row := &jobpolicyv1.TerminatingPod{
			Uid: p.uid, PodName: "pod", Index: p.index, DueTime: timestamppb.New(p.due), Tracked: p.holds(),
		}
		if c.readsNodes() {
			row.Node = p.node
		}
		req.TerminatingPods = append(req.TerminatingPods, row)
	}
}

func (c *cluster) readsNodes() bool {
	return c.spec.GetOptions().GetTerminationDeadlineNode() == jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_NOT_READY
}

// changeNode makes a node another one. The executor may know nothing of it for a while.
func (c *cluster) changeNode(p *modelPod) {
	p.node = rapid.SampledFrom([]jobpolicyv1.NodeState{0, 1, 1, 2, 2, 3}).Draw(c.t, "node")
}

// deadlinePassed reports whether a pod has not ended in time.
func (c *cluster) deadlinePassed(p *modelPod) bool {
	deadline := time.Duration(c.spec.GetOptions().GetTerminationDeadlineSeconds()) * time.Second
	return deadline > 0 && p.terminating() && !p.due.Add(deadline).After(c.now) && !c.spec.GetDeleting()
}

// overdue reports whether a pod counts as gone although it has not ended.
func (c *cluster) overdue(p *modelPod) bool {
	return c.deadlinePassed(p) && (!c.readsNodes() || p.node > 1)
}

// takenAsFailed reports whether such a pod is a failure, which it was not before. It stays one if its node is Ready again.
func (c *cluster) takenAsFailed(p *modelPod) bool {
	recorded := contains(c.status.GetUncounted().GetFailed(), p.uid)
	return c.replaceFailedOnly() && !p.releasedFirst && (c.overdue(p) || c.deadlinePassed(p) && (recorded || !p.holds()))
}

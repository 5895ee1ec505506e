package engine_test

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Pods of the model that are being deleted may end late, or not before their Job does: their node is lost.

// beginDeletion asks for a pod's deletion, with a grace period of 30 seconds.
func (c *cluster) beginDeletion(p *modelPod) {
	p.deleting, p.ready, p.finished, p.due = true, false, c.now, c.now.Add(30*time.Second)
}

func (c *cluster) observeTermination(req *jobpolicyv1.DecideJobRequest, p *modelPod) {
	if c.spec.GetOptions().GetTerminationDeadlineSeconds() > 0 {
		req.TerminatingPods = append(req.TerminatingPods, &jobpolicyv1.TerminatingPod{
			Uid: p.uid, PodName: "pod", Index: p.index, DueTime: timestamppb.New(p.due), Tracked: p.holds(),
		})
	}
}

// overdue reports whether a pod counts as gone although it has not ended.
func (c *cluster) overdue(p *modelPod) bool {
	deadline := time.Duration(c.spec.GetOptions().GetTerminationDeadlineSeconds()) * time.Second
	return deadline > 0 && p.terminating() && !p.due.Add(deadline).After(c.now) && !c.spec.GetDeleting()
}

// takenAsFailed reports whether such a pod is a failure, which it was not before.
func (c *cluster) takenAsFailed(p *modelPod) bool {
	return c.replaceFailedOnly() && c.overdue(p) && !p.releasedFirst
}

package podfacts

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// terminates notes a pod that is being deleted and has not ended.
func (c *Counter[P]) terminates(e *Counted[P]) {
	if c.terminating == nil {
		c.terminating = map[*Counted[P]]bool{}
	}
	c.terminating[e] = true
}

// TerminatingPods lists the pods that are being deleted and have not ended, in order of the time
// when they were to be gone; nil if the Job has no termination deadline. From the deadline on, such a
// pod is a failure for the retry delay, so the caller asks for these pods before it calls Retry.
//
// A pod without the tracking finalizer may have lost it because it counts as failed, or before
// somebody deleted it. If the owner has not seen which, it counts as failed: a longer delay does no
// harm, and one that is too short does (invariant I12). For the same reason a pod that the status has recorded is a
// failure even if its node is Ready again.
//
// node says the state of a pod's node. It is called only for Jobs that ask for it (ReadsNodes).
func (c *Counter[P]) TerminatingPods(options *jobpolicyv1.JobOptions, recorded UIDs, now time.Time, node func(P) jobpolicyv1.NodeState) []*jobpolicyv1.TerminatingPod {
	if options == nil || options.TerminationDeadlineSeconds == nil {
		return nil
	}
	deadline := time.Duration(options.GetTerminationDeadlineSeconds()) * time.Second
	readsNodes := ReadsNodes(options)
	var pods []*jobpolicyv1.TerminatingPod
	for e := range c.terminating {
		pod := c.facts(e.Pod)
		if pod.DeletionDue.IsZero() { // The deletion was accepted, and the pod does not show it yet.
			continue
		}
		row := &jobpolicyv1.TerminatingPod{
			Uid: pod.UID, PodName: pod.Name, Index: indexField(e.Share.index),
			DueTime: timestamppb.New(pod.DeletionDue), Tracked: pod.Tracked,
		}
		if readsNodes {
			row.Node = node(e.Pod)
		}
		pods = append(pods, row)
		fails := NodeLost(options, row.Node) || !pod.Tracked || recorded[string(pod.UID)]
		if fails && !e.releasedFirst && !pod.DeletionDue.Add(deadline).After(now) {
			c.retry.overdue(&pod, &c.policy, e.EndSeen)
		}
	}
	slices.SortFunc(pods, func(a, b *jobpolicyv1.TerminatingPod) int {
		return cmp.Or(a.DueTime.AsTime().Compare(b.DueTime.AsTime()), bytes.Compare(a.Uid, b.Uid))
	})
	return pods[:min(len(pods), maxRows)]
}

// ReadsNodes reports whether TerminatingPods say the state of the pods' nodes.
func ReadsNodes(options *jobpolicyv1.JobOptions) bool {
	return options.GetTerminationDeadlineNode() == jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_NOT_READY
}

// NodeLost reports whether a pod on such a node counts as failed when its termination deadline has passed.
func NodeLost(options *jobpolicyv1.JobOptions, node jobpolicyv1.NodeState) bool {
	return !ReadsNodes(options) || node == jobpolicyv1.NodeState_NODE_STATE_NOT_READY || node == jobpolicyv1.NodeState_NODE_STATE_GONE
}

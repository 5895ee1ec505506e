package engine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// A pod on a lost node stays in deletion until somebody says that it is gone: with pod
// replacement policy FAILED the Job waits for it, and every Job waits with its end. With
// options.termination_deadline_seconds such a pod is overdue at last, and then it counts as failed
// and as gone: it takes up no place any more. That its process may still run is the price. With
// options.termination_deadline_node NOT_READY that price is paid only if its node does not work either.
//
// The pod is recorded and released as any other failed pod, so each counts once (invariants I1
// and I2). If its node comes back later, the pod is recorded or released already, and whatever it
// says then changes no count (invariant I3). With NOT_READY the Job waits for it again until it has ended.

// terminations are the pods that are being deleted and have not ended, for a Job with a
// termination deadline. The zero value has none.
type terminations struct {
	// lost are the UIDs of those that count as failed and as gone.
	lost map[string]bool
	// unlistedLost is how many of these hold the tracking finalizer and have no row.
	unlistedLost int32
	// next is the one whose deadline passes next, at nextAt; nil if there is none.
	next   *jobpolicyv1.TerminatingPod
	nextAt time.Time
	// kept are those whose deadline has passed, and that count as terminating because of their nodes.
	kept []*jobpolicyv1.TerminatingPod
}

// readTerminations finds the overdue pods, and takes them out of the pods that are terminating.
// One that the caller has left out of unaccounted_pods is an unlisted failure (unlisted.go).
func (s *snapshot) readTerminations() {
	if s.spec.GetOptions() == nil || s.spec.GetOptions().TerminationDeadlineSeconds == nil || s.deleting() {
		return
	}
	listed := map[string]bool{}
	for _, row := range s.req.GetUnaccountedPods() {
		listed[string(row.GetUid())] = true
	}
	s.lost = map[string]bool{}
	var gone, held []int32
	for _, pod := range s.terminatingPods() {
		at, uid := s.terminationDeadline(pod), string(pod.GetUid())
		overdue := !at.After(s.now)
		if overdue && podfacts.NodeLost(s.spec.GetOptions(), pod.GetNode()) {
			s.lost[uid] = true
			gone = appendIndex(gone, pod)
			if pod.GetTracked() && !listed[uid] {
				s.unlistedLost++
			}
			continue
		}
		held = appendIndex(held, pod)
		switch {
		case overdue:
			s.kept = append(s.kept, pod)
		case s.next == nil:
			s.next, s.nextAt = pod, at
		}
	}
	if n := len(s.lost); n > 0 {
		s.pods = proto.CloneOf(s.pods)
		s.pods.Terminating -= int32(n)
		s.terminating = s.terminating.Minus(indexset.Of(gone...).Minus(indexset.Of(held...)))
	}
}

// terminatingPods are the rows of the pods that are being deleted, in the order in which their deadlines pass.
func (s *snapshot) terminatingPods() []*jobpolicyv1.TerminatingPod {
	return slices.SortedFunc(slices.Values(s.req.GetTerminatingPods()), func(a, b *jobpolicyv1.TerminatingPod) int {
		return cmp.Or(a.GetDueTime().AsTime().Compare(b.GetDueTime().AsTime()), bytes.Compare(a.GetUid(), b.GetUid()))
	})
}

func appendIndex(to []int32, pod *jobpolicyv1.TerminatingPod) []int32 {
	if pod.Index == nil {
		return to
	}
	return append(to, pod.GetIndex())
}

// terminationDeadline is when a pod that is being deleted counts as failed. The Job must have a
// termination deadline.
func (s *snapshot) terminationDeadline(pod *jobpolicyv1.TerminatingPod) time.Time {
	return pod.GetDueTime().AsTime().Add(time.Duration(s.spec.GetOptions().GetTerminationDeadlineSeconds()) * time.Second)
}

// terminationWaits are the waits for the next pod to be overdue, and for the nodes of those that are.
func terminationWaits(s *snapshot) (waits []*jobpolicyv1.Wait) {
	seconds := s.spec.GetOptions().GetTerminationDeadlineSeconds()
	if s.next != nil {
		becomes, condition := "counts as failed", ""
		if !s.next.GetTracked() {
			becomes = "counts as gone"
		}
		if podfacts.ReadsNodes(s.spec.GetOptions()) {
			condition = ", if its node is not Ready"
		}
		waits = append(waits, waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_TERMINATION_DEADLINE, s.nextAt,
			"pod %s, which is being deleted, %s %ds after its deletion was due%s", s.next.GetPodName(), becomes, seconds, condition))
	}
	var ready, unknown namedPods
	for _, pod := range s.kept {
		if pod.GetNode() == jobpolicyv1.NodeState_NODE_STATE_READY {
			ready.add(pod)
		} else {
			unknown.add(pod)
		}
	}
	for _, kept := range []struct {
		namedPods
		why string
	}{
		{ready, "their nodes are Ready"},
		{unknown, "it is not known whether their nodes are Ready (the executor may not be allowed to read nodes)"},
	} {
		if kept.n > 0 {
			waits = append(waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_TERMINATION_DEADLINE,
				"pods that have not ended %ds after their deletion was due, and that the Job waits for because %s: %s", seconds, kept.why, kept))
		}
	}
	return waits
}

// maxNames is how many pods an explanation names.
const maxNames = 3

// namedPods are a number of pods, and some of them by name.
type namedPods struct {
	n     int
	names []string
}

func (p *namedPods) add(pod *jobpolicyv1.TerminatingPod) {
	switch p.n++; {
	case p.n <= maxNames:
		p.names = append(p.names, fmt.Sprintf("%s, due at %s", pod.GetPodName(), pod.GetDueTime().AsTime().Format(time.RFC3339)))
	case p.n == maxNames+1:
		p.names = append(p.names, "...")
	}
}

func (p namedPods) String() string { return fmt.Sprintf("%d (%s)", p.n, strings.Join(p.names, "; ")) }

// overdueText names the pods that this decision counts as failed because they are overdue; empty
// if there are none.
func overdueText(s *snapshot, resp *jobpolicyv1.DecideJobResponse) string {
	if len(s.lost) == 0 {
		return ""
	}
	released := uidSet(resp.GetRelease())
	var pods namedPods
	for _, pod := range s.terminatingPods() {
		uid := pod.GetUid()
		if s.lost[string(uid)] && released[string(uid)] && !s.recordedFailed[string(uid)] && !s.recordedSucceeded[string(uid)] {
			pods.add(pod)
		}
	}
	if pods.n == 0 {
		return ""
	}
	return fmt.Sprintf("pods that have not ended %ds after their deletion was due, and count as failed: %s",
		s.spec.GetOptions().GetTerminationDeadlineSeconds(), pods)
}

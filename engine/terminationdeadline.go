package engine

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A pod on a lost node stays in deletion until somebody says that it is gone: with pod
// replacement policy FAILED the Job waits for it, and every Job waits with its end. With
// options.termination_deadline_seconds such a pod is overdue at last, and then it counts as failed
// and as gone: it takes up no place any more. That its process may still run is the price.
//
// The pod is recorded and released as any other failed pod, so each counts once (invariants I1
// and I2). If its node comes back later, the pod is recorded or released already, and whatever it
// says then changes nothing (invariant I3).

// terminations are the pods that are being deleted and have not ended, for a Job with a
// termination deadline. The zero value has none.
type terminations struct {
	// lost are the UIDs of those for which the deadline has passed.
	lost map[string]bool
	// unlistedLost is how many of these hold the tracking finalizer and have no row.
	unlistedLost int32
	// next is that one of the others whose deadline passes first, at nextAt; nil if there is none.
	next   *jobpolicyv1.TerminatingPod
	nextAt time.Time
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
	for _, pod := range s.req.GetTerminatingPods() {
		at, uid := s.terminationDeadline(pod), string(pod.GetUid())
		if overdue := !at.After(s.now); overdue {
			s.lost[uid] = true
			gone = appendIndex(gone, pod)
			if pod.GetTracked() && !listed[uid] {
				s.unlistedLost++
			}
			continue
		}
		held = appendIndex(held, pod)
		if s.next == nil || at.Before(s.nextAt) || at.Equal(s.nextAt) && uid < string(s.next.GetUid()) {
			s.next, s.nextAt = pod, at
		}
	}
	if n := len(s.lost); n > 0 {
		s.pods = proto.CloneOf(s.pods)
		s.pods.Terminating -= int32(n)
		s.terminating = s.terminating.Minus(indexset.Of(gone...).Minus(indexset.Of(held...)))
	}
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

// terminationWait is the wait for the next pod to be overdue; nil if there is none.
func terminationWait(s *snapshot) *jobpolicyv1.Wait {
	if s.next == nil {
		return nil
	}
	becomes := "counts as failed"
	if !s.next.GetTracked() {
		becomes = "counts as gone"
	}
	return waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_TERMINATION_DEADLINE, s.nextAt,
		"pod %s, which is being deleted, %s %ds after its deletion was due", s.next.GetPodName(), becomes,
		s.spec.GetOptions().GetTerminationDeadlineSeconds())
}

// maxNames is how many pods an explanation names.
const maxNames = 3

// overdueText names the pods that this decision counts as failed because they are overdue; empty
// if there are none.
func overdueText(s *snapshot, resp *jobpolicyv1.DecideJobResponse) string {
	released := uidSet(resp.GetRelease())
	var names []string
	n := 0
	for _, pod := range s.req.GetTerminatingPods() {
		uid := pod.GetUid()
		if !s.lost[string(uid)] || !released[string(uid)] || s.recordedFailed[string(uid)] || s.recordedSucceeded[string(uid)] {
			continue
		}
		if n++; n <= maxNames {
			names = append(names, fmt.Sprintf("%s, due at %s", pod.GetPodName(), pod.GetDueTime().AsTime().Format(time.RFC3339)))
		}
	}
	if n == 0 {
		return ""
	}
	if n > maxNames {
		names = append(names, "...")
	}
	return fmt.Sprintf("pods that have not ended %ds after their deletion was due, and count as failed: %d (%s)",
		s.spec.GetOptions().GetTerminationDeadlineSeconds(), n, strings.Join(names, "; "))
}

package engine

import (
	"bytes"
	"cmp"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// compareForDeletion orders active pods so that those whose deletion loses the least
// work come first: unassigned, pending, not ready, ready for a shorter time,
// restarted more often, newer (upstream ActivePods, v1.37). Of pods that are equal in all
// that, those with the lowest indexes come first: upstream sorts by index before (up to 12
// pods; above, its sort leaves them in no particular order). UIDs settle what is left, so
// that the order of rows does not matter (invariant I7).
func compareForDeletion(a, b *jobpolicyv1.ActivePod) int {
	return cmp.Or(
		falseFirst(a.GetScheduled(), b.GetScheduled()),
		cmp.Compare(phaseRank(a.GetPhase()), phaseRank(b.GetPhase())),
		falseFirst(a.GetReady(), b.GetReady()),
		compareReadySince(a, b),
		cmp.Compare(b.GetMaxRestarts(), a.GetMaxRestarts()),
		cmp.Compare(b.GetMaxSidecarRestarts(), a.GetMaxSidecarRestarts()),
		latestFirst(a.GetCreatedTime(), b.GetCreatedTime()),
		cmp.Compare(a.GetIndex(), b.GetIndex()),
		bytes.Compare(a.GetUid(), b.GetUid()),
	)
}

func compareReadySince(a, b *jobpolicyv1.ActivePod) int {
	if !a.GetReady() || !b.GetReady() {
		return 0
	}
	return latestFirst(a.GetReadySince(), b.GetReadySince())
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// latestFirst orders later times first; an absent time counts as latest.
func latestFirst(a, b *timestamppb.Timestamp) int {
	if a == nil || b == nil {
		return falseFirst(a != nil, b != nil)
	}
	return b.AsTime().Compare(a.AsTime())
}

func phaseRank(phase jobpolicyv1.PodPhase) int {
	switch phase {
	case jobpolicyv1.PodPhase_POD_PHASE_PENDING:
		return 0
	case jobpolicyv1.PodPhase_POD_PHASE_UNKNOWN:
		return 1
	default:
		return 2
	}
}

// A deletion is a pod to delete and why.
type deletion struct {
	pod    *jobpolicyv1.ActivePod
	reason jobpolicyv1.DeleteReason
	// onlyUnstarted is DeletePod.only_unstarted.
	onlyUnstarted bool
}

func (d deletion) message(releaseFirst bool) *jobpolicyv1.DeletePod {
	return &jobpolicyv1.DeletePod{Uid: d.pod.GetUid(), ReleaseFirst: releaseFirst && d.pod.GetTracked(), Reason: d.reason, OnlyUnstarted: d.onlyUnstarted}
}

// choosePodsToDelete picks pods to delete: every pod of an INDEXED Job whose index is not
// below completions, all pods that share an index except the one that would be
// deleted last, and then enough of the rest to delete excess pods in all. completions
// is nil for pods without indexes.
func choosePodsToDelete(pods []*jobpolicyv1.ActivePod, excess int, completions *int32) []deletion {
	rest := slices.SortedFunc(slices.Values(pods), compareForDeletion)
	var chosen []deletion
	if completions != nil {
		chosen, rest = chooseBadIndexes(rest, *completions)
	}
	for _, pod := range rest {
		if len(chosen) >= excess {
			break
		}
		chosen = append(chosen, deletion{pod: pod, reason: jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY})
	}
	return chosen
}

// chooseBadIndexes splits pods, which are in order of deletion, into those with a bad
// or duplicate index and the one pod that each index keeps.
func chooseBadIndexes(pods []*jobpolicyv1.ActivePod, completions int32) (bad []deletion, rest []*jobpolicyv1.ActivePod) {
	keeper := map[int32]int{}
	for i, pod := range pods {
		if hasIndexBelow(pod.Index, completions) {
			keeper[pod.GetIndex()] = i
		}
	}
	for i, pod := range pods {
		if hasIndexBelow(pod.Index, completions) && keeper[pod.GetIndex()] == i {
			rest = append(rest, pod)
			continue
		}
		bad = append(bad, deletion{pod: pod, reason: jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX})
	}
	return bad, rest
}

// choosePodsToDelete chooses among the active pods of the request.
func (s *snapshot) choosePodsToDelete(excess int) []deletion {
	var completions *int32
	if s.indexed {
		completions = s.spec.Completions
	}
	return choosePodsToDelete(s.req.GetActivePods().GetPods(), excess, completions)
}

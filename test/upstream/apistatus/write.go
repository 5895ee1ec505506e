package apistatus

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// written is a status as the API has it. The executor's own conversion is for
// statuses that are right; this one writes anything that JobStatus can hold,
// index sets range by range.
func written(s *jobpolicyv1.JobStatus) batchv1.JobStatus {
	out := batchv1.JobStatus{
		StartTime:        writtenTime(s.GetStartTime()),
		CompletionTime:   writtenTime(s.GetCompletionTime()),
		Active:           s.GetActive(),
		Ready:            s.Ready,
		Terminating:      s.Terminating,
		Succeeded:        s.GetSucceeded(),
		Failed:           s.GetFailed(),
		CompletedIndexes: writtenIndexes(s.GetCompletedIndexes()),
	}
	for _, c := range s.GetConditions() {
		out.Conditions = append(out.Conditions, batchv1.JobCondition{
			Type: batchv1.JobConditionType(c.GetType()), Status: writtenConditionStatus(c.GetStatus()),
		})
	}
	if s.GetFailedIndexes() != nil {
		text := writtenIndexes(s.GetFailedIndexes())
		out.FailedIndexes = &text
	}
	if s.GetUncounted() != nil {
		out.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{
			Succeeded: writtenUIDs(s.GetUncounted().GetSucceeded()), Failed: writtenUIDs(s.GetUncounted().GetFailed()),
		}
	}
	return out
}

func writtenIndexes(set *jobpolicyv1.IndexSet) string {
	var parts []string
	for _, r := range set.GetRanges() {
		part := strconv.Itoa(int(r.GetFirst()))
		if r.GetLast() != r.GetFirst() {
			part += "-" + strconv.Itoa(int(r.GetLast()))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

func writtenUIDs(uids [][]byte) []types.UID {
	var out []types.UID
	for _, b := range uids {
		uid, err := wire.UIDString(b)
		if err != nil {
			uid = "" // Only the empty one is no UID.
		}
		out = append(out, uid)
	}
	return out
}

func writtenTime(t *timestamppb.Timestamp) *metav1.Time {
	if t == nil {
		return nil
	}
	at := metav1.NewTime(t.AsTime())
	return &at
}

func writtenConditionStatus(s jobpolicyv1.ConditionStatus) corev1.ConditionStatus {
	switch s {
	case isTrue:
		return corev1.ConditionTrue
	case isFalse:
		return corev1.ConditionFalse
	}
	return corev1.ConditionUnknown
}

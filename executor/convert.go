package executor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var errIndexes = errors.New("malformed index list")

// parseIndexes reads Kubernetes' notation of index sets, such as "1,3-5". The
// empty string is the empty set.
func parseIndexes(s string) (*jobpolicyv1.IndexSet, error) {
	set := &jobpolicyv1.IndexSet{}
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%q: %w", part, errIndexes)
		}
		n := len(set.Ranges)
		switch {
		case n > 0 && int32(first) <= set.Ranges[n-1].Last:
			return nil, fmt.Errorf("%q is out of order: %w", part, errIndexes)
		case n > 0 && int32(first) == set.Ranges[n-1].Last+1:
			set.Ranges[n-1].Last = int32(last)
		default:
			set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: int32(first), Last: int32(last)})
		}
	}
	return set, nil
}

// formatIndexes is the reverse of parseIndexes. Two neighbours are written one
// by one, three or more as a range, as the upstream controller does.
func formatIndexes(set *jobpolicyv1.IndexSet) string {
	var b []byte
	for _, r := range set.GetRanges() {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.GetFirst()), 10)
		switch r.GetLast() - r.GetFirst() {
		case 0:
			continue
		case 1:
			b = append(b, ',')
		default:
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(r.GetLast()), 10)
	}
	return string(b)
}

// eachIndex calls f for every index of the set, in ascending order.
func eachIndex(set *jobpolicyv1.IndexSet, f func(int32)) {
	for _, r := range set.GetRanges() {
		for ix := int64(r.GetFirst()); ix <= int64(r.GetLast()); ix++ {
			f(int32(ix))
		}
	}
}

// StatusMessage converts a Job's status for the engine. Neighbouring intervals of
// an index set are joined: "0,1" becomes the range (0,1).
//
// It fails for what no message can hold: an index set that is malformed or out
// of order, and an uncounted UID that is no UUID. The API server accepts such
// UIDs, and no such index sets since v1.32.
func StatusMessage(in *batchv1.JobStatus) (*jobpolicyv1.JobStatus, error) {
	out := &jobpolicyv1.JobStatus{
		StartTime:      timeMessage(in.StartTime),
		CompletionTime: timeMessage(in.CompletionTime),
		Active:         in.Active,
		Ready:          in.Ready,
		Terminating:    in.Terminating,
		Succeeded:      in.Succeeded,
		Failed:         in.Failed,
	}
	for i := range in.Conditions {
		out.Conditions = append(out.Conditions, conditionMessage(&in.Conditions[i]))
	}
	var err error
	if in.CompletedIndexes != "" {
		if out.CompletedIndexes, err = parseIndexes(in.CompletedIndexes); err != nil {
			return nil, fmt.Errorf("completedIndexes: %w", err)
		}
	}
	if in.FailedIndexes != nil {
		if out.FailedIndexes, err = parseIndexes(*in.FailedIndexes); err != nil {
			return nil, fmt.Errorf("failedIndexes: %w", err)
		}
	}
	if out.Uncounted, err = uncountedMessage(in.UncountedTerminatedPods); err != nil {
		return nil, fmt.Errorf("uncountedTerminatedPods: %w", err)
	}
	return out, nil
}

func conditionMessage(c *batchv1.JobCondition) *jobpolicyv1.JobCondition {
	return &jobpolicyv1.JobCondition{
		Type:               string(c.Type),
		Status:             conditionStatusMessage(c.Status),
		Reason:             c.Reason,
		Message:            c.Message,
		LastProbeTime:      timeMessage(&c.LastProbeTime),
		LastTransitionTime: timeMessage(&c.LastTransitionTime),
	}
}

func uncountedMessage(in *batchv1.UncountedTerminatedPods) (*jobpolicyv1.UncountedTerminatedPods, error) {
	if in == nil || len(in.Succeeded)+len(in.Failed) == 0 {
		return nil, nil
	}
	succeeded, err := uidMessages(in.Succeeded)
	if err != nil {
		return nil, err
	}
	failed, err := uidMessages(in.Failed)
	if err != nil {
		return nil, err
	}
	return &jobpolicyv1.UncountedTerminatedPods{Succeeded: succeeded, Failed: failed}, nil
}

func uidMessages(uids []types.UID) ([][]byte, error) {
	var out [][]byte
	for _, uid := range uids {
		b, err := tracker.UIDBytes(uid)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// apiStatus converts a decided status for the API server.
func apiStatus(in *jobpolicyv1.JobStatus) (batchv1.JobStatus, error) {
	out := batchv1.JobStatus{
		StartTime:        apiTime(in.GetStartTime()),
		CompletionTime:   apiTime(in.GetCompletionTime()),
		Active:           in.GetActive(),
		Ready:            in.Ready,
		Terminating:      in.Terminating,
		Succeeded:        in.GetSucceeded(),
		Failed:           in.GetFailed(),
		CompletedIndexes: formatIndexes(in.GetCompletedIndexes()),
	}
	for _, c := range in.GetConditions() {
		out.Conditions = append(out.Conditions, apiCondition(c))
	}
	if in.GetFailedIndexes() != nil {
		s := formatIndexes(in.GetFailedIndexes())
		out.FailedIndexes = &s
	}
	// Always present, as the upstream controller writes it: its presence tells
	// that the Job's pods are tracked with finalizers.
	out.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	var err error
	if out.UncountedTerminatedPods.Succeeded, err = apiUIDs(in.GetUncounted().GetSucceeded()); err != nil {
		return batchv1.JobStatus{}, fmt.Errorf("uncounted.succeeded: %w", err)
	}
	if out.UncountedTerminatedPods.Failed, err = apiUIDs(in.GetUncounted().GetFailed()); err != nil {
		return batchv1.JobStatus{}, fmt.Errorf("uncounted.failed: %w", err)
	}
	return out, nil
}

func apiCondition(c *jobpolicyv1.JobCondition) batchv1.JobCondition {
	out := batchv1.JobCondition{
		Type: batchv1.JobConditionType(c.GetType()), Status: apiConditionStatus(c.GetStatus()),
		Reason: c.GetReason(), Message: c.GetMessage(),
	}
	if at := apiTime(c.GetLastProbeTime()); at != nil {
		out.LastProbeTime = *at
	}
	if at := apiTime(c.GetLastTransitionTime()); at != nil {
		out.LastTransitionTime = *at
	}
	return out
}

func apiUIDs(uids [][]byte) ([]types.UID, error) {
	var out []types.UID
	for _, b := range uids {
		uid, err := tracker.UIDString(b)
		if err != nil {
			return nil, err
		}
		out = append(out, uid)
	}
	return out, nil
}

func timeMessage(t *metav1.Time) *timestamppb.Timestamp {
	if t == nil || t.IsZero() {
		return nil
	}
	return timestamppb.New(t.Time)
}

// apiTime cuts to whole seconds: that is what the API keeps.
func apiTime(t *timestamppb.Timestamp) *metav1.Time {
	if t == nil {
		return nil
	}
	at := metav1.NewTime(t.AsTime().Truncate(time.Second))
	return &at
}

func conditionStatusMessage(s corev1.ConditionStatus) jobpolicyv1.ConditionStatus {
	switch s {
	case corev1.ConditionTrue:
		return jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE
	case corev1.ConditionFalse:
		return jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE
	default:
		return jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN
	}
}

func apiConditionStatus(s jobpolicyv1.ConditionStatus) corev1.ConditionStatus {
	switch s {
	case jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE:
		return corev1.ConditionTrue
	case jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE:
		return corev1.ConditionFalse
	default:
		return corev1.ConditionUnknown
	}
}

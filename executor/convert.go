package executor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
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
// Whoever may write a Job's status can put there what makes a request invalid,
// and the API server takes it. So only conditions of the types that the engine
// writes are converted, one of each (withOtherConditions puts the others back),
// and uncounted UIDs that no object can have are left out: there is no pod to
// count.
//
// It fails for an index set that is malformed or out of order. The API server
// accepts no such sets since v1.32.
func StatusMessage(in *batchv1.JobStatus) (*jobpolicyv1.JobStatus, error) {
	out := &jobpolicyv1.JobStatus{
		StartTime:      timeMessage(in.StartTime),
		CompletionTime: timeMessage(in.CompletionTime),
		Active:         in.Active,
		Ready:          in.Ready,
		Terminating:    in.Terminating,
		Succeeded:      in.Succeeded,
		Failed:         in.Failed,
		Conditions:     conditionMessages(in.Conditions),
		Uncounted:      uncountedMessage(in.UncountedTerminatedPods),
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
	return out, nil
}

// uncountedMessage is nil when nothing is uncounted.
func uncountedMessage(in *batchv1.UncountedTerminatedPods) *jobpolicyv1.UncountedTerminatedPods {
	if in == nil {
		return nil
	}
	out := &jobpolicyv1.UncountedTerminatedPods{Succeeded: uidMessages(in.Succeeded), Failed: uidMessages(in.Failed)}
	if len(out.Succeeded)+len(out.Failed) == 0 {
		return nil
	}
	return out
}

func uidMessages(uids []types.UID) [][]byte {
	var out [][]byte
	for _, uid := range uids {
		if b, err := tracker.UIDBytes(uid); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// APIStatus converts a decided status for the API server: the reverse of
// StatusMessage. Conditions of other types than the engine writes are not in it;
// put back those that the Job has. It fails for a UID that is not one of 16 bytes.
func APIStatus(in *jobpolicyv1.JobStatus) (batchv1.JobStatus, error) {
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
	return tracker.Timestamp(t.Time)
}

// apiTime cuts to whole seconds: that is what the API keeps.
func apiTime(t *timestamppb.Timestamp) *metav1.Time {
	if t == nil {
		return nil
	}
	at := metav1.NewTime(t.AsTime().Truncate(time.Second))
	return &at
}

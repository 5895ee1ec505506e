package wire

import (
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// JobStatus converts a Job's status for the engine. Neighbouring intervals of an index set
// are joined: "0,1" becomes the range (0,1).
//
// Anybody who may write a Job's status can put values there that the API server accepts, but
// that would make a request invalid. So JobStatus leaves out some of them:
//
//   - It converts only conditions of the types that the engine writes, and one of each type.
//     NextStatus puts the others back.
//   - It leaves out uncounted UIDs that no object can have. There is no such pod to count.
//
// It fails for an index set that is malformed or out of order. The API server has refused such
// sets since v1.32.
func JobStatus(in *batchv1.JobStatus) (*jobpolicyv1.JobStatus, error) {
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
		if out.CompletedIndexes, err = ParseIndexes(in.CompletedIndexes); err != nil {
			return nil, fmt.Errorf("completedIndexes: %w", err)
		}
	}
	if in.FailedIndexes != nil {
		if out.FailedIndexes, err = ParseIndexes(*in.FailedIndexes); err != nil {
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
		if b, err := UIDBytes(uid); err == nil {
			out = append(out, b)
		}
	}
	return out
}

// APIStatus converts a decided status for the API server: the reverse of JobStatus. The
// result has only conditions of the types that the engine writes; NextStatus puts the
// others back. It fails for a UID that does not have 16 bytes.
func APIStatus(in *jobpolicyv1.JobStatus) (batchv1.JobStatus, error) {
	out := batchv1.JobStatus{
		StartTime:        APITime(in.GetStartTime()),
		CompletionTime:   APITime(in.GetCompletionTime()),
		Active:           in.GetActive(),
		Ready:            in.Ready,
		Terminating:      in.Terminating,
		Succeeded:        in.GetSucceeded(),
		Failed:           in.GetFailed(),
		CompletedIndexes: FormatIndexes(in.GetCompletedIndexes()),
	}
	for _, c := range in.GetConditions() {
		out.Conditions = append(out.Conditions, apiCondition(c))
	}
	if in.GetFailedIndexes() != nil {
		s := FormatIndexes(in.GetFailedIndexes())
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
		uid, err := UIDString(b)
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
	return Timestamp(t.Time)
}

// APITime converts a time of the contract. It cuts the time to whole seconds, as the API
// stores it.
func APITime(t *timestamppb.Timestamp) *metav1.Time {
	if t == nil {
		return nil
	}
	at := metav1.NewTime(t.AsTime().Truncate(time.Second))
	return &at
}

// NextStatus is a Job's status after a decision, and whether that is another one than the Job had. A
// nil decided is a decision that leaves the status as it is.
func NextStatus(decided *jobpolicyv1.JobStatus, had *batchv1.JobStatus) (next batchv1.JobStatus, changed bool, err error) {
	if decided == nil {
		return *had, false, nil
	}
	if next, err = APIStatus(decided); err != nil {
		return next, false, err
	}
	keepUndecided(&next, had)
	return next, !SameStatus(&next, had), nil
}

// keepUndecided puts back what APIStatus cannot know: conditions of types that the
// engine does not write, and a start time that no message can hold. The API server
// refuses to change the start time of a Job that runs.
func keepUndecided(status, had *batchv1.JobStatus) {
	status.Conditions = withOtherConditions(had.Conditions, status.Conditions)
	if had.StartTime != nil && status.StartTime.Equal(APITime(timeMessage(had.StartTime))) {
		status.StartTime = had.StartTime
	}
}

// SameStatus reports whether two statuses are semantically equal.
func SameStatus(a, b *batchv1.JobStatus) bool { return apiequality.Semantic.DeepEqual(a, b) }

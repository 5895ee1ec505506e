package engine

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The lists of a status may be long: 100000 indexes, 500 UIDs. So they are built once,
// and they are not copied in order to compare two statuses.

// withoutLists copies a status without its index sets and UIDs.
func withoutLists(status *jobpolicyv1.JobStatus) *jobpolicyv1.JobStatus {
	c := &jobpolicyv1.JobStatus{
		StartTime:      proto.CloneOf(status.GetStartTime()),
		CompletionTime: proto.CloneOf(status.GetCompletionTime()),
		Active:         status.GetActive(),
		Ready:          status.Ready,
		Terminating:    status.Terminating,
		Succeeded:      status.GetSucceeded(),
		Failed:         status.GetFailed(),
	}
	for _, condition := range status.GetConditions() {
		c.Conditions = append(c.Conditions, proto.CloneOf(condition))
	}
	c.ProtoReflect().SetUnknown(bytes.Clone(status.ProtoReflect().GetUnknown()))
	return c
}

// sameStatus reports whether two statuses mean the same. Equal sets may be written in
// different ranges, and where absence means empty, absent and empty are equal.
func sameStatus(a, b *jobpolicyv1.JobStatus) bool {
	return sameSet(a.GetCompletedIndexes(), b.GetCompletedIndexes()) &&
		(a.FailedIndexes == nil) == (b.FailedIndexes == nil) &&
		sameSet(a.GetFailedIndexes(), b.GetFailedIndexes()) &&
		slices.EqualFunc(a.GetUncounted().GetSucceeded(), b.GetUncounted().GetSucceeded(), bytes.Equal) &&
		slices.EqualFunc(a.GetUncounted().GetFailed(), b.GetUncounted().GetFailed(), bytes.Equal) &&
		proto.Equal(withoutLists(a), withoutLists(b))
}

func sameSet(a, b *jobpolicyv1.IndexSet) bool {
	return slices.Equal(readSet(a).Ranges(), readSet(b).Ranges())
}

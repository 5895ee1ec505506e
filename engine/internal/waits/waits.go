// Package waits has what a decision waits for. Its requeue time and its explanation are made
// from the same list.
package waits

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A List is what a decision waits for, in the order of its explanation.
type List []*jobpolicyv1.Wait

// RequeueTime is the earliest time after now at which a wait ends by itself (invariant I11);
// nil if there is none.
func (l List) RequeueTime(now time.Time) *timestamppb.Timestamp {
	var earliest *timestamppb.Timestamp
	for _, w := range l {
		at := w.GetUntil()
		if at == nil || !at.AsTime().After(now) {
			continue
		}
		if earliest == nil || at.AsTime().Before(earliest.AsTime()) {
			earliest = at
		}
	}
	return proto.CloneOf(earliest)
}

// DeferredUntil returns the earliest time at which the caller wants a step. asked is false
// if the caller did not defer the step.
func DeferredUntil(deferrals []*jobpolicyv1.Deferral, step jobpolicyv1.Step) (until time.Time, asked bool) {
	for _, d := range deferrals {
		if d.GetStep() == step {
			return d.GetUntil().AsTime(), true
		}
	}
	return time.Time{}, false
}

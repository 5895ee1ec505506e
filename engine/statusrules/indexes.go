package statusrules

import (
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	completedField = "completedIndexes"
	failedField    = "failedIndexes"
)

func (t Transition) indexed() bool {
	return t.Spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

// counted reports whether the Job has completions. Only then do its indexes have a
// limit.
func (t Transition) counted() bool { return t.Spec != nil && t.Spec.Completions != nil }

func (t Transition) limitedPerIndex() bool {
	return t.Spec != nil && t.Spec.BackoffLimitPerIndex != nil
}

// sameRanges compares sets as they are written.
func sameRanges(a, b *jobpolicyv1.IndexSet) bool {
	return slices.EqualFunc(a.GetRanges(), b.GetRanges(), func(x, y *jobpolicyv1.IndexRange) bool {
		return x.GetFirst() == y.GetFirst() && x.GetLast() == y.GetLast()
	})
}

func (t Transition) completedIndexesChange() bool {
	return !sameRanges(t.Before.GetCompletedIndexes(), t.After.GetCompletedIndexes())
}

func (t Transition) failedIndexesChange() bool {
	before, after := t.Before.GetFailedIndexes(), t.After.GetFailedIndexes()
	return (before == nil) != (after == nil) || !sameRanges(before, after)
}

// wrongRange says what is wrong with a range by itself; empty if it is valid.
func wrongRange(r *jobpolicyv1.IndexRange, completions int32) string {
	switch {
	case r.GetFirst() < 0 || r.GetLast() < r.GetFirst():
		return fmt.Sprintf("range %d-%d does not satisfy 0 <= first <= last", r.GetFirst(), r.GetLast())
	case r.GetLast() >= completions:
		return fmt.Sprintf("index %d is not below spec.completions, %d", r.GetLast(), completions)
	}
	return ""
}

// malformed records the first thing that is wrong with a set.
func (t Transition) malformed(r *report, field string, set *jobpolicyv1.IndexSet) {
	previous := int32(-1)
	for _, x := range set.GetRanges() {
		if wrong := wrongRange(x, t.Spec.GetCompletions()); wrong != "" {
			r.add(field, "%s", wrong)
			return
		}
		if x.GetFirst() <= previous {
			r.add(field, "must be in ascending order: index %d comes after %d", x.GetFirst(), previous)
			return
		}
		previous = x.GetLast()
	}
}

func completedIndexesMalformed(t Transition, r *report) {
	if t.completedIndexesChange() && t.counted() {
		t.malformed(r, completedField, t.After.GetCompletedIndexes())
	}
}

func completedIndexesNonIndexed(t Transition, r *report) {
	if t.completedIndexesChange() && len(t.After.GetCompletedIndexes().GetRanges()) > 0 && !t.indexed() {
		r.add(completedField, "must be empty for a Job that is not Indexed")
	}
}

func failedIndexesMalformed(t Transition, r *report) {
	if t.failedIndexesChange() && t.limitedPerIndex() && t.counted() {
		t.malformed(r, failedField, t.After.GetFailedIndexes())
	}
}

func failedIndexesWithoutBackoffLimitPerIndex(t Transition, r *report) {
	if t.failedIndexesChange() && !t.limitedPerIndex() && t.After.GetFailedIndexes() != nil {
		r.add(failedField, "must be absent for a Job without backoffLimitPerIndex")
	}
}

// indexCompletedAndFailed walks both lists as they are written, as the API server
// does. Other rules report ranges that are invalid by themselves. If a list is out of
// order, an index that is in both lists may be missed.
func indexCompletedAndFailed(t Transition, r *report) {
	if !t.counted() || (!t.completedIndexesChange() && !t.failedIndexesChange()) {
		return
	}
	a := t.rightRanges(t.After.GetCompletedIndexes())
	b := t.rightRanges(t.After.GetFailedIndexes())
	for len(a) > 0 && len(b) > 0 {
		if a[0].GetFirst() <= b[0].GetLast() && b[0].GetFirst() <= a[0].GetLast() {
			r.add(failedField, "index %d is also in completedIndexes", max(a[0].GetFirst(), b[0].GetFirst()))
			return
		}
		if a[0].GetFirst() <= b[0].GetFirst() {
			a = a[1:]
			continue
		}
		b = b[1:]
	}
}

// rightRanges are the ranges of a set that are valid by themselves.
func (t Transition) rightRanges(set *jobpolicyv1.IndexSet) []*jobpolicyv1.IndexRange {
	var right []*jobpolicyv1.IndexRange
	for _, x := range set.GetRanges() {
		if wrongRange(x, t.Spec.GetCompletions()) == "" {
			right = append(right, x)
		}
	}
	return right
}

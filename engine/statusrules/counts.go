package statusrules

import (
	"bytes"
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const uncountedField = "uncountedTerminatedPods"

func sameCount(a, b *int32) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}

func negativeCount(t Transition, r *report) {
	for _, count := range []struct {
		field string
		n     int32
	}{
		{"active", t.After.GetActive()},
		{"succeeded", t.After.GetSucceeded()},
		{"failed", t.After.GetFailed()},
		{"ready", t.After.GetReady()},
		{"terminating", t.After.GetTerminating()},
	} {
		if count.n < 0 {
			r.add(count.field, "must not be negative, is %d", count.n)
		}
	}
}

// eachUncounted calls f for every uncounted UID, in the API server's order.
func (t Transition) eachUncounted(f func(list string, position int, uid []byte)) {
	for i, uid := range t.After.GetUncounted().GetSucceeded() {
		f("succeeded", i, uid)
	}
	for i, uid := range t.After.GetUncounted().GetFailed() {
		f("failed", i, uid)
	}
}

func uncountedEntry(list string, position int) string {
	return fmt.Sprintf("%s.%s[%d]", uncountedField, list, position)
}

func uncountedUIDEmpty(t Transition, r *report) {
	t.eachUncounted(func(list string, position int, uid []byte) {
		if len(uid) == 0 {
			r.add(uncountedEntry(list, position), "must not be empty")
		}
	})
}

func uncountedUIDDuplicate(t Transition, r *report) {
	seen := map[string]bool{}
	t.eachUncounted(func(list string, position int, uid []byte) {
		if len(uid) > 0 && seen[string(uid)] {
			r.add(uncountedEntry(list, position), "is a duplicate: %s may list a UID only once", uncountedField)
		}
		seen[string(uid)] = true
	})
}

func (t Transition) uncountedChanges() bool {
	before, after := t.Before.GetUncounted(), t.After.GetUncounted()
	return !slices.EqualFunc(before.GetSucceeded(), after.GetSucceeded(), bytes.Equal) ||
		!slices.EqualFunc(before.GetFailed(), after.GetFailed(), bytes.Equal)
}

func finishedWithUncountedPods(t Transition, r *report) {
	n := len(t.After.GetUncounted().GetSucceeded()) + len(t.After.GetUncounted().GetFailed())
	if n > 0 && isFinished(t.After) && (t.finishes() || t.uncountedChanges()) {
		r.add(uncountedField, "must be empty for a finished Job, holds %d", n)
	}
}

func finishedWithActivePods(t Transition, r *report) {
	n := t.After.GetActive()
	if n > 0 && isFinished(t.After) && (t.finishes() || t.Before.GetActive() != n) {
		r.add("active", "must be 0 for a finished Job, is %d", n)
	}
}

func finishedWithTerminatingPods(t Transition, r *report) {
	n := t.After.GetTerminating()
	if n > 0 && isFinished(t.After) && (t.finishes() || t.Before.GetTerminating() != n) {
		r.add("terminating", "must be 0 for a finished Job, is %d", n)
	}
}

func moreReadyThanActive(t Transition, r *report) {
	before, after := ready(t.Before), ready(t.After)
	if after == nil || (sameCount(before, after) && t.Before.GetActive() == t.After.GetActive()) {
		return
	}
	if *after > t.After.GetActive() {
		r.add("ready", "must not be above active (%d), is %d", t.After.GetActive(), *after)
	}
}

// ready is the count of ready pods; nil if they were never counted.
func ready(s *jobpolicyv1.JobStatus) *int32 {
	if s == nil {
		return nil
	}
	return s.Ready
}

func failedDecreased(t Transition, r *report) {
	t.decreased(r, "failed", t.Before.GetFailed(), t.After.GetFailed())
}

// succeededDecreased does not apply to an Indexed Job whose completions and
// parallelism are equal: when such a Job is scaled down, the number of its succeeded
// indexes may fall.
func succeededDecreased(t Transition, r *report) {
	if t.indexed() && t.counted() && t.Spec.GetCompletions() == t.Spec.GetParallelism() {
		return
	}
	t.decreased(r, "succeeded", t.Before.GetSucceeded(), t.After.GetSucceeded())
}

func (t Transition) decreased(r *report, field string, before, after int32) {
	if after < before {
		r.add(field, "must not decrease: was %d, is %d", before, after)
	}
}

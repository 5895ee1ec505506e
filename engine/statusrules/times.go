package statusrules

import "google.golang.org/protobuf/types/known/timestamppb"

const (
	startField      = "startTime"
	completionField = "completionTime"
)

// sameTime compares times as the API stores them, in whole seconds.
func sameTime(a, b *timestamppb.Timestamp) bool {
	return (a == nil) == (b == nil) && a.GetSeconds() == b.GetSeconds()
}

func (t Transition) startTimeChanges() bool {
	return !sameTime(t.Before.GetStartTime(), t.After.GetStartTime())
}

func (t Transition) completionTimeChanges() bool {
	return !sameTime(t.Before.GetCompletionTime(), t.After.GetCompletionTime())
}

func completionTimeWithoutComplete(t Transition, r *report) {
	if (t.flips(complete) || t.completionTimeChanges()) && t.After.GetCompletionTime() != nil && !is(t.After, complete) {
		r.add(completionField, "must not be set without the condition Complete")
	}
}

func completeWithoutCompletionTime(t Transition, r *report) {
	if (t.flips(complete) || t.completionTimeChanges()) && t.After.GetCompletionTime() == nil && is(t.After, complete) {
		r.add(completionField, "must be set with the condition Complete")
	}
}

func completionTimeBeforeStartTime(t Transition, r *report) {
	start, completion := t.After.GetStartTime(), t.After.GetCompletionTime()
	if start == nil || completion == nil || (!t.startTimeChanges() && !t.completionTimeChanges()) {
		return
	}
	if completion.GetSeconds() < start.GetSeconds() {
		r.add(completionField, "must not be before startTime, is %d s before it", start.GetSeconds()-completion.GetSeconds())
	}
}

func completionTimeChanged(t Transition, r *report) {
	if t.Before.GetCompletionTime() != nil && t.After.GetCompletionTime() != nil && t.completionTimeChanges() {
		r.add(completionField, "is set and must stay as it is")
	}
}

func finishedWithoutStartTime(t Transition, r *report) {
	if (t.finishes() || t.startTimeChanges()) && t.After.GetStartTime() == nil && isFinished(t.After) {
		r.add(startField, "must be set for a finished Job")
	}
}

// finishedWithoutStartTimeUnlessEmpty lets a suspended Job without completions
// finish: it never starts (kubernetes#132614).
func finishedWithoutStartTimeUnlessEmpty(t Transition, r *report) {
	if t.Spec.GetSuspend() && t.counted() && t.Spec.GetCompletions() == 0 {
		return
	}
	finishedWithoutStartTime(t, r)
}

func startTimeChanged(t Transition, r *report) {
	if t.Before.GetStartTime() != nil && t.startTimeChanges() && !t.Spec.GetSuspend() {
		r.add(startField, "is set and must stay as it is while the Job is not suspended")
	}
}

// startTimeChangedUnlessResumed lets the update that reports a resumption set a
// new start time: the spec says by then that the Job is not suspended
// (kubernetes#134521).
func startTimeChangedUnlessResumed(t Transition, r *report) {
	if !t.resumes() {
		startTimeChanged(t, r)
	}
}

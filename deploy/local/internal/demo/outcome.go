package demo

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// An outcome is what the status of a Job says at its end.
type outcome struct {
	// gone: the Job does not exist any more.
	gone             bool
	conditions       []condition
	succeeded        int32
	failed           int32
	completedIndexes string
	failedIndexes    string
	// loose lists fields that a finished Job must not have; none is ever expected.
	loose []string
}

// anyNumber is an expected count that matches every count.
const anyNumber = -1

// A condition is one of a Job's, without its times.
type condition struct {
	kind            string
	holds           bool
	reason, message string
}

// outcomeOf reads the outcome of a Job; nil: the Job is gone.
func outcomeOf(job *batchv1.Job) outcome {
	if job == nil {
		return outcome{gone: true}
	}
	s := job.Status
	o := outcome{
		succeeded: s.Succeeded, failed: s.Failed, completedIndexes: s.CompletedIndexes, loose: looseEnds(job),
	}
	if s.FailedIndexes != nil {
		o.failedIndexes = *s.FailedIndexes
	}
	for _, c := range s.Conditions {
		o.conditions = append(o.conditions, condition{string(c.Type), c.Status == corev1.ConditionTrue, c.Reason, c.Message})
	}
	return o
}

// looseEnds names the fields that contradict a Job's end.
func looseEnds(job *batchv1.Job) []string {
	var loose []string
	say := func(contradicts bool, format string, args ...any) {
		if contradicts {
			loose = append(loose, fmt.Sprintf(format, args...))
		}
	}
	s := job.Status
	complete, failed := conditionTrue(job, batchv1.JobComplete), conditionTrue(job, batchv1.JobFailed)
	say(s.Active != 0, "active %d", s.Active)
	say(s.Ready != nil && *s.Ready != 0, "ready %d", deref(s.Ready))
	say(s.Terminating != nil && *s.Terminating != 0, "terminating %d", deref(s.Terminating))
	if u := s.UncountedTerminatedPods; u != nil {
		say(len(u.Succeeded)+len(u.Failed) > 0, "uncounted pods %d", len(u.Succeeded)+len(u.Failed))
	}
	say(complete && s.CompletionTime == nil, "no completionTime")
	say(!complete && s.CompletionTime != nil, "a completionTime")
	say((complete || failed) && s.StartTime == nil, "no startTime")
	say(!complete && !failed && s.StartTime != nil, "a startTime")
	return loose
}

// as returns the outcome for a comparison with another one: where that accepts any number
// or has a star in a message, so does the result.
func (o outcome) as(want outcome) outcome {
	if want.succeeded == anyNumber {
		o.succeeded = anyNumber
	}
	if want.failed == anyNumber {
		o.failed = anyNumber
	}
	o.conditions = slices.Clone(o.conditions)
	for i := range min(len(o.conditions), len(want.conditions)) {
		if matchesStar(want.conditions[i].message, o.conditions[i].message) {
			o.conditions[i].message = want.conditions[i].message
		}
	}
	return o
}

// matchesStar compares a text with a pattern. A star in the pattern matches some characters
// without a space.
func matchesStar(pattern, text string) bool {
	before, after, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	middle, ok := strings.CutPrefix(text, before)
	if !ok {
		return false
	}
	middle, ok = strings.CutSuffix(middle, after)
	return ok && middle != "" && !strings.Contains(middle, " ")
}

// String returns all fields of the outcome in one line.
func (o outcome) String() string {
	if o.gone {
		return "gone"
	}
	parts := []string{describeConditions(o.conditions)}
	count := func(name string, n int32) {
		if n != anyNumber {
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		}
	}
	count("succeeded", o.succeeded)
	count("failed", o.failed)
	if o.completedIndexes != "" {
		parts = append(parts, "completedIndexes "+o.completedIndexes)
	}
	if o.failedIndexes != "" {
		parts = append(parts, "failedIndexes "+o.failedIndexes)
	}
	return strings.Join(append(parts, o.loose...), "; ")
}

// describeConditions writes conditions in their order; what several of them
// give as their reason stands once.
func describeConditions(conditions []condition) string {
	if len(conditions) == 0 {
		return "no condition"
	}
	var b strings.Builder
	for i, c := range conditions {
		if i > 0 {
			b.WriteString(", ")
		}
		if !c.holds {
			b.WriteString("not ")
		}
		b.WriteString(c.kind)
		last := i == len(conditions)-1
		if last || conditions[i+1].reason != c.reason || conditions[i+1].message != c.message {
			fmt.Fprintf(&b, " (%s: %s)", c.reason, c.message)
		}
	}
	return b.String()
}

func conditionTrue(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// deref returns what p points to; 0 if nothing.
func deref(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}

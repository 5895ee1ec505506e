package check

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The checks below run for every field of every row. They hand values to Require and
// Violated only when something is wrong, because that allocates.

// RequestID checks the id of a request.
func (c *Checker) RequestID(id string) {
	c.Require(len(id) <= maxRequestIDBytes, "request_id", "must have at most %d bytes, has %d", maxRequestIDBytes, len(id))
}

// BytesBetween checks the length of a text, in bytes.
func (c *Checker) BytesBetween(field, s string, low, high int) {
	if len(s) < low || len(s) > high {
		c.Violated(field, "must have %d to %d bytes, has %d", low, high, len(s))
	}
}

// Length checks how many entries a list has.
func (c *Checker) Length(field string, n, most int) bool {
	if n <= most {
		return true
	}
	return c.Require(false, field, "must have at most %d entries, has %d", most, n)
}

// NotNegative checks a count.
func (c *Checker) NotNegative(field string, n int64) {
	if n < 0 {
		c.Violated(field, "must not be negative, is %d", n)
	}
}

// Between checks a number; low and high are allowed.
func (c *Checker) Between(field string, n, low, high int64) bool {
	if n >= low && n <= high {
		return true
	}
	return c.Require(false, field, "must be between %d and %d, is %d", low, high, n)
}

// RequiredTime checks a time that must be present.
func (c *Checker) RequiredTime(field string, t *timestamppb.Timestamp) {
	if c.Require(t != nil, field, "is required") {
		c.OptionalTime(field, t)
	}
}

// OptionalTime checks a time that may be absent.
func (c *Checker) OptionalTime(field string, t *timestamppb.Timestamp) {
	if t != nil && !t.IsValid() {
		c.Violated(field, "must be a time between the years 1 and 9999")
	}
}

// OptionProblems checks the sentences about options that cannot be read.
func (c *Checker) OptionProblems(field string, problems []string) {
	Each(c, field, maxOptionProblems, problems, func(problem string) { c.BytesBetween("", problem, 1, maxProblemBytes) })
}

// Deferrals checks the steps that a caller asks the engine to leave for later: each at
// most once. An unknown step is allowed.
func (c *Checker) Deferrals(deferrals []*jobpolicyv1.Deferral) {
	seen := map[jobpolicyv1.Step]bool{}
	Each(c, "deferrals", maxDeferrals, deferrals, func(d *jobpolicyv1.Deferral) {
		c.Require(d.GetStep() != jobpolicyv1.Step_STEP_UNSPECIFIED, "step", "is required")
		c.Require(d.GetStep() == jobpolicyv1.Step_STEP_UNSPECIFIED || !seen[d.GetStep()], "step", "is also that of an earlier entry")
		seen[d.GetStep()] = true
		c.RequiredTime("until", d.GetUntil())
	})
}

// Package check is the only way into the engine: it finds what is wrong with a request
// before anything else reads it.
package check

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

// Limits of the contract that hold for every request.
const (
	maxRequestIDBytes = 128
	MaxNameBytes      = 253
	maxDeferrals      = 100
	maxViolations     = 100
	maxOptionProblems = 10
	maxProblemBytes   = 1024
)

// Request refuses a request that has fields or values that this engine does not know
// (*UnsupportedError), and one in which validate finds violations (*InvalidRequestError).
func Request(req proto.Message, validate func(*Checker)) error {
	if err := Known(req); err != nil {
		return err
	}
	c := &Checker{}
	validate(c)
	if len(c.violations) > 0 {
		return &InvalidRequestError{Violations: c.violations}
	}
	return nil
}

// A Checker collects violations. It continues after the first one, so that a caller
// can correct all of them at once. A request may hold 100000 rows, nearly always
// valid ones, so texts are made only for violations.
type Checker struct {
	violations []FieldViolation
	// items are the list elements and messages that are being checked, outermost first.
	// Field names in checks are relative to the last one.
	items []item
}

// An item is an element of a list, or a message.
type item struct {
	list  string
	index int
}

// noIndex is the index of a message that is not in a list.
const noIndex = -1

// Enter makes field names relative to an element of a list.
func (c *Checker) Enter(list string, index int) {
	c.items = append(c.items, item{list, index})
}

// Leave undoes the last Enter or Within.
func (c *Checker) Leave() { c.items = c.items[:len(c.items)-1] }

// Within makes field names relative to a message, until Leave.
func (c *Checker) Within(message string) { c.Enter(message, noIndex) }

// path is the full name of a field of the current element; of the element
// itself if field is empty.
func (c *Checker) path(field string) string {
	var b strings.Builder
	for _, item := range c.items {
		b.WriteString(item.list)
		if item.index != noIndex {
			fmt.Fprintf(&b, "[%d]", item.index)
		}
		b.WriteByte('.')
	}
	b.WriteString(field)
	return strings.TrimSuffix(b.String(), ".")
}

// Violated records a violation of field.
func (c *Checker) Violated(field, format string, args ...any) {
	if !c.Full() {
		c.violations = append(c.violations, FieldViolation{Field: c.path(field), Description: fmt.Sprintf(format, args...)})
	}
}

// Require records a violation of field unless ok.
func (c *Checker) Require(ok bool, field, format string, args ...any) bool {
	if !ok {
		c.Violated(field, format, args...)
	}
	return ok
}

// Full reports that no further violation would be listed, so that the rest of a long
// list need not be checked.
func (c *Checker) Full() bool { return len(c.violations) >= maxViolations }

// Each checks the items of a list, and that there are no more than most.
func Each[T any](c *Checker, list string, most int, items []T, checkItem func(T)) {
	if !c.Length(list, len(items), most) {
		return
	}
	for i, item := range items {
		if c.Full() {
			return
		}
		c.Enter(list, i)
		checkItem(item)
		c.Leave()
	}
}

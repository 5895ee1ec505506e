package check

import (
	"fmt"
	"strings"
)

// A FieldViolation is one field of a request that breaks the contract.
type FieldViolation struct {
	// Field is the path from the request's root, in proto field names, with
	// list positions in brackets: unaccounted_pods[3].uid.
	Field string
	// Description says what was expected and what was found.
	Description string
}

// An InvalidRequestError says why there is no decision on a request. The same request
// will never be accepted.
type InvalidRequestError struct {
	// Violations is never empty. At most 100 are listed.
	Violations []FieldViolation
}

// Error lists the violations.
func (e *InvalidRequestError) Error() string {
	parts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		parts[i] = v.Field + ": " + v.Description
	}
	return "invalid request: " + strings.Join(parts, "; ")
}

// An UnsupportedError says that a request has a field or a value which this
// engine does not know, and which could change its decision.
type UnsupportedError struct {
	// Field is the path of the field, as in FieldViolation. A field that has no name
	// here stands by its number: spec.8191.
	Field string
	// Description says what is not known.
	Description string
}

// Error names the field and what is not known.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported: %s: %s", e.Field, e.Description)
}

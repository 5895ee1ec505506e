package engine

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

// An InvalidRequestError says why a request cannot be decided on. Nothing was
// decided; the same request will never be accepted.
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

// An UnsupportedError says that a request needs a capability which this engine
// does not have (see Capabilities).
type UnsupportedError struct {
	// Field is the path of the field that asks for the capability.
	Field string
	// Description names the capability.
	Description string
}

// Error names the field and the capability.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported: %s: %s", e.Field, e.Description)
}

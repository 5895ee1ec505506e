package engine

import "jobpolicy.dev/engine/internal/check"

// An InvalidRequestError says why there is no decision on a request. The same request
// will never be accepted. Its Violations are never empty; at most 100 are listed.
type InvalidRequestError = check.InvalidRequestError

// A FieldViolation is one field of a request that breaks the contract. Field is the path
// from the request's root, in proto field names, with list positions in brackets, such as
// unaccounted_pods[3].uid. Description says what was expected and what was found.
type FieldViolation = check.FieldViolation

// An UnsupportedError says that a request has a field or a value which this engine does
// not know, and which could change its decision. Field is its path, as in FieldViolation;
// a field that has no name here stands by its number: spec.8191. Description says what is
// not known.
type UnsupportedError = check.UnsupportedError

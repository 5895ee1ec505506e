// Package statusrules says which status updates of a Job the Kubernetes API server
// accepts, by minor version, and which rules an update breaks.
//
// The rules are those that the API server applies to writes of the status subresource
// of batch/v1 Jobs. The table in rules.go is the specification: each row is one named
// rule, with the minor versions that have it. The rules are taken from the newest
// patch release of each minor version that the Go module proxy serves:
//
//	v1.29.6  v1.30.14  v1.31.14  v1.32.13  v1.33.13  v1.34.4  v1.35.4  v1.36.3  v1.37.2
//
// Earlier patch releases of v1.32 to v1.34 may be stricter in two rules, which
// were relaxed in patch releases: FinishedWithoutStartTime (kubernetes#132614)
// and StartTimeChanged (kubernetes#134521). v1.34.0, for example, has the first
// change only, and v1.32.2 has neither.
//
// # Feature gates
//
// Most rules depend on the feature gate JobManagedBy: off by default in v1.30 and
// v1.31, on from v1.32, locked on from v1.35, unknown before v1.30. No rule looks at
// spec.managedBy itself: once the gate is on, the rules apply to every Job, whoever
// writes its status. An [APIServer] says whether the gate is on. This package assumes
// that every other gate has its default. Only one of them matters,
// JobPodReplacementPolicy, and only in v1.31 to v1.33 with JobManagedBy off: with
// both off, SuccessCriteriaMet is restricted as in v1.30.
//
// # What is changed
//
// Many rules apply only when a field that they check changes, because a user may have
// changed the spec after a valid status was written. So an invalid status that is
// already stored may be written again. A change is what the API server regards as
// one:
//
//   - Times are compared in whole seconds; the API keeps no fractions.
//   - For the API server an index set is a text. Each range stands for one interval
//     of the text, in the same order: "0,1,7-9" is (0,0) (1,1) (7,9). The same
//     indexes in different ranges are a change, so before and after must have exactly
//     the intervals of their texts. A text that ranges cannot express ("a", "1-",
//     "3-3") breaks CompletedIndexesMalformed or FailedIndexesMalformed on every API
//     server that has the rule.
//   - No failed indexes (absent) and the empty set of them differ.
//
// Rules about the spec are not part of this package, even if they depend on the
// status (for example which parts of a started Job's template may change).
package statusrules

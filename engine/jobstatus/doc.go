// Package jobstatus says which status updates of a Job the Kubernetes API
// server accepts, by minor version, and which rules a bad one breaks.
//
// The rules are those that the API server applies to writes of the status
// subresource of batch/v1 Jobs. The table in rules.go is the specification: one
// named rule a row, with the minor versions that have it. They are read off the
// newest patch release of each minor version that the Go module proxy serves:
//
//	v1.29.6  v1.30.14  v1.31.14  v1.32.13  v1.33.13  v1.34.4  v1.35.4  v1.36.3
//
// Earlier patch releases of v1.32 to v1.34 may be stricter in two rules, which
// were relaxed in patch releases: FinishedWithoutStartTime (kubernetes#132614)
// and StartTimeChanged (kubernetes#134521). v1.34.0, for example, has the first
// change only, and v1.32.2 has neither.
//
// # Feature gates
//
// Most rules stand behind the feature gate JobManagedBy: off by default in
// v1.30 and v1.31, on from v1.32, locked on from v1.35, unknown before v1.30. No
// rule looks at spec.managedBy itself: once the gate is on, the rules hold for
// every Job and for whoever writes its status. An [APIServer] says how the gate
// stands. Every other gate is taken at its default; one matters,
// JobPodReplacementPolicy, and only in v1.31 to v1.33 with JobManagedBy off:
// with both off, SuccessCriteriaMet is restricted as in v1.30.
//
// # What is changed
//
// Many rules are asked only when a field that they are about changes, because a
// user may have changed the spec under a status that was right before. So a bad
// status that is already there may be written again. What counts as a change is
// what the API server takes for one:
//
//   - Times are compared in whole seconds; the API keeps no fractions.
//   - Index sets are texts to the API server. Ranges stand for the intervals of
//     the text, in its order: "0,1,7-9" is (0,0) (1,1) (7,9). Sets of the same
//     indexes in different ranges are a change. To see what the API server will
//     see, write before and after the way their texts are written. Text that no
//     ranges can stand for ("a", "1-", "3-3") breaks CompletedIndexesMalformed
//     or FailedIndexesMalformed on every API server that has the rule.
//   - No failed indexes (absent) and the empty set of them differ.
//
// Rules about the spec, also those that depend on the status (what of a started
// Job's template may still change), are not part of this package.
package jobstatus

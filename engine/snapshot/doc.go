// Package snapshot counts the pods of a Job for a caller of the engine.
//
// Request takes the Job's spec, its status as last written, and the whole list of its
// pods. It returns a DecideJobRequest in which everything about pods is set: counts,
// index sets, a row for each pod that matters by itself, the releases that are
// confirmed, and the facts for the retry delay. The caller adds what only it knows:
// the id, the time, the Job's name and UID, its settings, and what is in flight. So
// the caller needs no ledger of its own.
//
// "Pod" is the contract's word. A pod may be any unit of work that runs once, such
// as a process on one machine.
//
// The package is as pure as the engine: it has no clock and no memory. The cost of a
// request grows with the number of pods. The executor's tracker feeds the same counter
// (proto/podfacts) event by event, at a cost that does not grow with the Job: it keeps
// the counts between requests, and decides which source is newer if several report on a pod.
package snapshot

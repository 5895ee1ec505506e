// Package podfacts counts the pods of a Job for a request: which pods there are, which of them
// get a row, what is said of the others, and on what the retry delay depends.
//
// Pod holds the facts about one pod. A Counter takes pods one by one and keeps sums over them,
// so that a request costs O(rows + ranges of indexes), however many pods there are. Package
// engine/snapshot counts a whole list of pods with it, and the executor's tracker one event at a
// time.
//
// The package is pure, as the engine is: it has no clock and no locks.
package podfacts

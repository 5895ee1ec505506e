// Package state holds what the executor remembers of each Job, by UID (invariant I8).
//
// It makes no API calls, starts no goroutines and knows no queue. Each part of a Job has
// its own lock. While a part holds its lock, it calls no other part except the Tracker.
package state

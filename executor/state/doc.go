// Package state is what the executor remembers of each Job, by UID (invariant I8).
//
// It holds facts and answers questions about them. It makes no calls, starts no
// goroutine, and knows no queue. Every part of a Job has a lock of its own, and no
// part calls another one while it holds that lock, but for the Tracker.
package state

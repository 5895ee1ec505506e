// Package faults is the slice of test/world that stays on a real API server: real
// processes that are killed, a real network that loses answers, and what the
// world does not draw (a phase that flips, a namespace that goes, a template that
// changes, the queries of the first reads). Everything else that may go wrong is
// test/world's to find.
//
// Each test has a [Proxy] between its executor, a process of its own, and a real
// API server. The proxy refuses requests, loses answers, holds watches back, and
// cuts them. Nothing runs pods: the tests play the node, so that it is settled what
// happens when, and what the counts must be.
//
// Every test also watches the API server past the proxy. What it sees of Jobs
// and pods must never break the invariants (history_test.go), and in the end no
// pod may be left with a finalizer: each namespace is deleted, and must go.
//
//	go test ./e2e/faults                                   all of it
//	go test ./e2e/faults -run Chaos -args -faults.seed=17  one seed of the chaos run again
package faults

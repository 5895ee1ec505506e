// Package faults holds the executor against the bugs that the built-in Job
// controller once had: its tests are named after the upstream issues, and say
// what must hold.
//
// Each test has a [Proxy] between its executor, a process of its own, and a real
// API server. The proxy refuses requests, loses answers, holds requests and
// watches back, and cuts them. Nothing runs pods: the tests play the node, so
// that it is settled what happens when, and what the counts must be.
//
// Every test also watches the API server past the proxy. What it sees of Jobs
// and pods must never break the invariants (history_test.go), and in the end no
// pod may be left with a finalizer: each namespace is deleted, and must go.
//
//	go test ./e2e/faults                                   all of it
//	go test ./e2e/faults -run Chaos -args -faults.seed=17  one seed of the chaos run again
package faults

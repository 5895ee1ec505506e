// Package faults tests the executor on a real API server where test/simulated/world cannot: with
// real processes that are killed, a real network that loses answers, and cases that the
// world does not draw (a phase that flips, a namespace that is deleted, a template that
// changes, the queries of the first reads). All other faults are tested in test/simulated/world.
//
// In each test a [Proxy] stands between the executor, which is a process of its own,
// and a real API server. The proxy refuses requests, loses answers, holds watches back,
// and cuts them. Nothing runs pods: the tests simulate the node, so that they know what
// happened when, and what the counts must be.
//
// Every test also watches the API server directly. The Jobs and pods that it sees must
// never break the invariants (history_test.go). At the end no pod may have a finalizer:
// each namespace is deleted, and must disappear.
//
//	go test ./plane/e2e/faults                                   all of it
//	go test ./plane/e2e/faults -run Chaos -args -faults.seed=17  one seed of the chaos run again
package faults

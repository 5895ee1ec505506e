// Package conformance is a differential oracle: it holds this project's Job
// controller against the built-in one of Kubernetes.
//
// Two control planes run side by side. One has the built-in job controller, the
// other the policy engine and the executor in replace mode. A case is a Job and
// a script of steps: what becomes of its pods, and what users do. Both control
// planes get the same case, and nodes that play it alike (see kubelet.go). After
// every step both are given time to come to rest, and then must show the same
// view: conditions, counters, indexes, pods, finalizers, events (see view.go).
//
// When things happen is not compared, only what is there at rest: our side even
// retries failed pods after one second instead of ten.
//
// A view that differs is a bug, or one of the deliberate differences, which
// stand with name and reason in differences.go.
//
//	go test ./conformance                                    hand-written cases and some generated ones
//	go test ./conformance -args -conformance.cases=500       more generated cases
//	go test ./conformance -args -conformance.replay=seed-17  one case again
//	go test ./conformance -args -conformance.shrink          shorter scripts for what fails
//
// # Steps
//
//	succeed PODS, fail PODS [exit=N] [container=NAME] [condition=TYPE], restart PODS count=N
//	run PODS            pods start; without the word "manual" in a case all do so by themselves
//	remove PODS         a user deletes pods
//	hold                from now on deleted pods take their time, until a step "end"
//	end PODS failed|succeeded
//	parallelism N, resize N, suspend, resume, backoffLimit N, activeDeadlineSeconds N
//	template KEY=VALUE  a label of the pod template
//	delete Background|Foreground|Orphan, recreate
//	wait                until the Job is finished
//
// PODS is a number (of pods that are alike), * (all), or #1,4 (those of indexes).
package conformance

// Package parity compares this project's Job controller with the built-in one of
// Kubernetes.
//
// A case is a Job and a script of steps: what happens to its pods, and what users do.
// It is played twice, each time in virtual time on an API server in memory (package
// virtual): once with the built-in controller, and once with the executor and the
// policy engine. A node does the same in both (see kubelet.go). After every step a side
// comes to rest, and then both must show the same view: conditions, counters, indexes,
// pods, finalizers, events (see view.go). The API server must not refuse any status
// that our side writes because of its content.
//
// Only the state at rest is compared, not when things happen.
//
// A different view is a defect, or one of the deliberate differences, which
// differences.go lists with name and reason, or the result of a race that has two right
// outcomes. For a race, the built-in side is played again so that it sees
// pods or Jobs later, and must then show exactly what ours has shown (see races.go).
//
// In some cases the controllers are killed and started again, at times that the seed
// decides and where a step says so. Events are not compared in them, because a killed
// controller loses the events that it has not sent.
//
//	go test ./simulated/parity                               hand-written cases and some generated ones
//	go test ./simulated/parity -args -parity.cases=5000      more generated cases, every ninth in restarts
//	go test ./simulated/parity -args -parity.seed=5000       other generated cases
//	go test ./simulated/parity -args -parity.replay=seed-17  one case again; restarts-seed-17 for one in restarts
//	go test ./simulated/parity -args -parity.shrink          shorter scripts for what fails
//
// # Steps
//
//	succeed PODS, fail PODS [exit=N] [container=NAME] [condition=TYPE], restart PODS count=N [container=NAME]
//	halfway PODS        the main containers end, and the pod goes on for its sidecars
//	run PODS            pods start; without the word "manual" in a case all do so by themselves
//	remove PODS         a user deletes pods
//	relabel PODS        a user takes pods out of the Job's selector
//	pod [phase=PHASE] [owner=job|other] [tracked=true] [labels=none] [index=N]
//	                    a pod that the controller has not created comes to the Job
//	hold                from now on deleted pods take their time, until a step "end"
//	end PODS failed|succeeded
//	parallelism N, resize N, suspend, resume, backoffLimit N, activeDeadlineSeconds N
//	edit FIELD VALUE    another field of the spec
//	template KEY=VALUE  a label of the pod template; annotate, nodeSelector, toleration, affinity, gate, cpu and image
//	                    edit other parts of it; label, finalizer and unfinalizer edit the Job's metadata
//	delete Background|Foreground|Orphan, recreate (as soon as the name is free)
//	crash [engine]      the controller is killed, and started again when the line is done
//	wait                until the Job is finished
//
// PODS is a number (of pods that are alike), * (all), or #1,4 (those of indexes).
// Steps joined by " & " are done one right after the other. The word "try" before
// a step allows the API server to refuse it, as long as both do.
package parity

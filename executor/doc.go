// Package executor carries out what a policy engine decides about Jobs.
//
// It watches Jobs and pods, and reconciles each Job that it manages: take a snapshot, ask
// the Decider, apply the decision in the order that the contract (jobpolicy.v1) states.
// What really happened is part of the next snapshot. The executor decides nothing itself
// and never adjusts a decision.
//
// What must be known to use it:
//
//   - One Executor at a time may manage a Job. Run it under leader election when there is
//     more than one process. A second one does no harm to counters, because every status
//     write carries the resource version that was decided on.
//   - New needs a client and a Decider. Run blocks until its context ends and the
//     reconciles in progress are finished.
//   - By default only Jobs whose spec.managedBy is Config.ManagedBy are managed. With
//     Config.ReplaceBuiltin also those that the built-in controller would manage, which
//     must then be switched off.
//
// # The way of a pod event
//
//	watcher ─▶ tracker ─▶ jobQueue.enqueue        watch.go, queue.go
//	reconciler ─▶ refresh, claim                  reconcile.go, refresh.go, claim.go
//	           ─▶ decider: snapshot, ask, check   decide.go, snapshot.go, check.go
//	           ─▶ applier                         apply.go, create.go, delete.go
//	           ─▶ requeue after
//
// Beside it, safety.go looks for Jobs whose event was missed. executor.go makes the parts;
// report.go and metrics.go tell metrics, log and events what was done.
//
// # The packages below
//
// controller has the queue, the workers and the calls of the engine; state what is
// remembered of each Job; tracker its pods; api the calls to the API server; limit bounds
// them; gang finds or makes Workloads and PodGroups; orphan releases pods whose Job cannot
// do it any more; podcache keeps pods small; wire converts.
package executor

// Package executor carries out what a policy engine decides about Jobs.
//
// It watches Jobs and pods, keeps a tracker for each Job's UID, and runs rounds:
// take a snapshot, ask the Decider, apply the answer in the order that the
// contract (jobpolicy.v1) states, and let what really happened be part of the
// next snapshot. It decides nothing itself and never adjusts a decision.
//
// What must be known to use it:
//
//   - One Executor at a time may manage a Job. Run it under leader election when
//     there is more than one process. A second one does no harm to counters,
//     because every status write carries the resource version that was judged.
//   - New needs a client and a Decider; Run blocks until its context ends and
//     the rounds in progress are finished.
//   - By default only Jobs whose spec.managedBy is Config.ManagedBy are managed.
//     With Config.ReplaceBuiltin also those that the built-in controller would
//     manage, which must then be switched off.
//
// Reading order: executor.go (life), handlers.go (events in), schedule.go (when
// a Job is due), round.go (one pass), refresh.go and claim.go (what is made certain
// first), snapshot.go (what is asked), apply.go (what is done), orphans.go (pods whose
// Job cannot care for them any more). Below it, api makes the calls to the API server,
// limit bounds them, gang finds or makes Workloads and PodGroups, wire converts.
package executor

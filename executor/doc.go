// Package executor carries out what a policy engine decides about Jobs.
//
// It watches Jobs and pods. It reconciles each Job that it manages: take a snapshot, ask
// the Decider, apply the decision in the order that the contract (jobpolicy.v1) states.
// What really happened is part of the next snapshot. The executor decides nothing itself
// and never adjusts a decision.
//
// To use it:
//
//   - New needs a client and a Decider. Run blocks until its context ends and the
//     reconciles in progress are finished. With Config.CronJobs and Config.FinishedJobs, it also
//     runs CronJobs, and deletes finished Jobs whose time to live is over.
//   - By default the Executor manages only Jobs whose spec.managedBy is Config.ManagedBy.
//     With Config.ReplaceBuiltin it also manages the Jobs of the built-in controller, which
//     must then be switched off.
//   - Only one Executor at a time may manage a Job. With several processes, use leader
//     election. If a second one runs all the same, the counters stay right: every status
//     write carries the resource version that was decided on.
//
// # From a pod event to a write
//
//  1. The watcher gets the event from the pod informer. It updates what is known of the Job that
//     controls the pod (package tracker), and puts the Job into the work queue (watch.go, queue.go).
//  2. A worker takes the Job from the queue and calls the reconciler (reconcile.go). That
//     reads what the caches may not show, such as the outcome of a write without an answer
//     (refresh.go). It adopts pods and disowns others (claim.go).
//  3. The decider makes a request from what is known (snapshot.go), asks the engine
//     (decide.go) and checks the answer (wire.CheckDecision).
//  4. The applier carries the decision out (apply.go): it creates pods (create.go) or
//     deletes pods (delete.go), writes the status (status.go), removes finalizers (release.go)
//     and records events. Each answer of the API server updates what is known of the Job at
//     once.
//  5. The applier says when the Job is due again if no event comes (requeue.go), and the
//     reconciler returns that to the queue.
//
// config.go has the settings, executor.go makes these parts, and controllers.go the controllers of
// CronJobs and of finished Jobs. report.go, describe.go and metrics.go record in metrics, log, spans and
// events what was done. observe.go shows the Jobs and their last decisions to people. missed.go
// looks for Jobs whose event was missed. standby.go fills the pod cache, if need be before this
// process leads. shadow.go only compares decisions with what the built-in controller does.
// ARCHITECTURE.md explains the words and the invariants (I1 to I12).
//
// # What this module exports
//
//   - Package executor: New, Config, Run, and its read-only views: EachJob, Job, EachCronJob, Queues,
//     Ready and SecondController. NewBesideJobs runs CronJobs and finished Jobs alone. face.go and names.go
//     have the types and names that go with them.
//   - leaderelection, for several processes; shadow, for Config.Shadow.
//   - podcache and newerfields, the decoders of Config.Client: they keep pods small and templates whole.
//   - podjob, for a controller of another kind of object whose pods run as a Job.
//   - wire, for callers of the engine: Kubernetes objects to messages of the contract and back.
//   - tracker, for callers of the engine with thousands of pods: it keeps count of a Job's pods event by
//     event, and the views of this package have its types.
//   - writes, for programs that read the executor's events: the kinds of writes, and their refusals.
//
// All else is internal, and may change at any time.
//
// # The internal packages
//
// controller has what all controllers share: the informers, which objects are managed, the queue, the
// workers and the calls of the engine. api makes the calls to the API server, and limit bounds how many
// are in flight. clock has the delays after failures. events sends Kubernetes events. gang finds or makes
// Workloads and PodGroups. cronjob and ttl are the controllers of CronJobs and of finished Jobs. telemetry
// has the metrics that controllers share, and the names of spans.
//
// Beside the loop, orphans.go releases pods whose Job cannot do it any more, and deletes those that outlive
// a finished Job; secondcontroller.go notices another controller that works on the same Jobs.
package executor

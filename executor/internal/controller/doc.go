// Package controller is what the controllers of this module share: configuration,
// informers, which objects are managed, work queues, workers, calls of the policy engine,
// events, spans, and how a controller starts and ends.
//
// Weighed against controller-runtime v0.25 (its controller, priority queue and cache): that
// has no slots by namespace, no least time between two reconciles of a key, and no cause of
// a reconcile.
//
// # From an event to a reconcile
//
//	informer handler ─▶ Queue.Enqueue ─▶ worker ─▶ Reconcile(ctx, key) ─▶ Result, error
//	                        ▲                                                │
//	                        └───────────── requeue after, backoff ◀──────────┘
//
// A handler says that a key has to be reconciled, why, and how urgent that is. All events of
// a key that come before its next reconcile begins are one entry in the queue. A key is
// reconciled by one worker at a time.
//
// # To write a controller
//
// Make a Controller with New, tell it with AddCache which informers it needs, make each
// Queue with NewQueue and a Reconcile function, and call Run. Reconcile asks the engine
// with Ask, which measures the call and checks the answer. Its Result says when to
// reconcile again.
//
// # Time
//
// One rule holds in all of this module. What is compared with times of the cluster, sent
// to the engine, written to the API server or shown to people is wall time, and comes from
// Config.Now. How long something takes or waits is elapsed time, and comes from package
// time; tests run in a bubble of testing/synctest, which replaces it. Package clock
// converts between the two.
package controller

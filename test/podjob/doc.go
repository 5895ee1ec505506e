// Package podjob plays small worlds in virtual time, in which the real engine and package
// executor/podjob run groups of pods for an object of a kind of their own, and judges every
// write.
//
// A world is drawn from one seed: one to three groups of one owner, what happens to their
// pods, what users, strangers and webhooks do, and which requests fail. A single goroutine
// plays it inside a testing/synctest bubble. While a request is on its way, others act, so the
// API server may have changed between what a Step has read and what it writes. The same seed
// gives the same world.
//
// The view of a Step is what its caller has read: the object with its statuses, and all pods.
// It is never older than the reconcile, because podjob demands that. The judge keeps the view
// of the running Step, and judges each write by that view and by what is stored.
//
// # Which pods need not be counted
//
// Each pod that a group has created is recorded exactly once, with these exceptions:
//
//   - Somebody else took its finalizer before it was recorded (a deletion by force).
//   - Another object took it over before it was recorded.
//   - It was released while it ran, in a view in which the group was suspended, had more pods than
//     it wants, had another pod or the result of the same index, or did not ask for its index.
//   - It ended, and the pod failure policy ignores its failure, the group does not ask for its index,
//     or the group has met its success criteria or is finished.
//   - Its owner is gone.
//
// # What else is tolerated
//
//   - A pod that another object took over after it was listed may still be deleted while it has the
//     finalizer, and released if its end is accounted for or the end of its group asks for that: these
//     requests name only the pod's UID, as those of the executor do.
//   - A creation that got no answer may take effect late. Such pods may be too many.
//   - A failed pod with limits per index keeps its finalizer until the next pod of its index exists, so
//     also while its group is suspended.
package podjob

// Package exhaustive tries every order of steps that a few pods and executors can take, over the real engine and the real
// tracker. Package world draws some orders of a large cluster; proof/ tries all of a model. This package tries all
// of the code, for up to three pods and two executors.
//
// A state is what the API server has stored, how far each watch has come, what each executor's tracker knows, which calls
// its decision still has to make, and which call is under way. Steps are:
//
//   - a pod becomes ready, succeeds or fails; a user deletes it; the garbage collector deletes it with its Job
//   - somebody suspends, resumes or deletes the Job (in the foreground)
//   - a watch shows its next event to an executor; those of Jobs and of pods are two watches
//   - an executor reconciles: it reads what it must, or decides. After the first decision, it may have routine statuses wait
//   - the API server sees an executor's next call. It does what it says, or refuses it because the object has
//     changed. Faults: it does it and the answer is lost, or it does not do it and no answer comes
//   - the answer, or the timeout, reaches the executor
//   - an executor ends and another one begins, which lists pods and then takes part. The Job may be an older version that it
//     had seen (Scope.LateJobs)
//
// With two executors neither knows of the other, so each order of a takeover is among the orders of their steps.
//
// After every write a ledger.Book holds what was stored to the invariants, and so does judge.go, which also looks at creations. From some
// states a run without faults goes on until nothing can happen any more: then the Job has ended, each pod is counted
// and no finalizer stays.
//
// # What is real
//
// The engine, its checks, the tracker, the wire conversions, new pods and the next status are the product's. Told again are,
// in calls.go, the calls of executor/internal/api for one call at a time, and in decide.go the order of a reconcile
// (executor/reconcile.go, refresh.go, apply.go). They need a client and goroutines, so the code itself cannot be stopped after
// each call. So a defect in that order is found by the worlds and the end-to-end tests, not here.
//
// # What is left out
//
// Time passes for no rule: each decision is an hour after all events, so no delay hinders a step. An executor may reconcile at
// any time, so a reconcile that nothing triggers is not missed here. A call without an answer has taken effect by the time of
// the timeout, or never does. An executor makes one call at a time, adopts nothing, and meets no quota, webhook or namespace that is
// deleted. Pods of a Job that is gone are left to the worlds. A run in which one more pod than Scope.Pods would be created
// ends there for that executor.
//
// # Equal states
//
// A state is known again by 64 bits of a hash (key.go). Resource versions enter it as their order, pods as a set. With 10
// million states the probability that any two of them collide is one in 370,000. TestEqualKeysHaveEqualFutures holds the keys
// to the steps that follow. Exchanged executors are one state. Exchanged pods are, too, although the engine lists pods in the order of their UIDs: of two
// pods of which one must be written first, only one order is tried.
package exhaustive

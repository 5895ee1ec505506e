// Package shadow compares the decisions of the engine with what another controller does,
// and changes nothing in the cluster.
//
// The controllers of Jobs, CronJobs and finished Jobs use it in shadow mode. They watch the
// same objects and make the same requests as ever, but they have no part that could write.
//
// # When the engine is asked
//
// The engine is asked at every rest of an object: nothing has happened to it, or to its
// pods or Jobs, for Config.Rest. While something happens, the other controller may still be
// about to react.
//
// # What counts as a difference
//
// At a rest, the other controller has done everything that it wants to do. A decision that
// would change something is therefore a difference. It is reported if the engine decides the
// same after another Config.Rest without an event, because retry delays, deadlines and
// schedules also end while nothing happens, and the other controller needs a moment then.
// A decision that waits is no difference.
//
// What happened before the rest is not compared: which verdict the engine would have reached,
// or whether it would have started a pod later.
//
// Read differences.go (what a decision would change), compare.go (when it is asked and
// reported), report.go (metrics, log lines and what the page shows).
package shadow

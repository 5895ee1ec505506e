// Package explain says in plain English why a Job is in its state: what is happening,
// what the Job waits for and until when, what would change or end it, and which of its
// pods cannot start. For a CronJob it says when the next run starts, which runs were
// skipped and why, and which Jobs are active.
//
// It asks the policy engine about a snapshot of the Job, so it says what the rules of
// the Job API require next, whichever controller acts on the Job. The rest (events, the
// state of containers) it takes from what the caller has read of the cluster.
package explain

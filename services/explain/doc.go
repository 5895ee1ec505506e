// Package explain says in plain English why a Job is where it is: what goes on, what
// it waits for and until when, what would change or end it, and which of its pods
// cannot start. Of a CronJob it says when the next run comes, which were skipped and
// why, and which Jobs are active.
//
// It asks the policy engine about a snapshot of the Job, so it says what the rules of
// the Job API demand next, whichever controller acts on the Job. What only a cluster
// knows (events, the state of containers) it reads itself.
package explain

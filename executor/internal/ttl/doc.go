// Package ttl deletes finished Jobs when their time to live is over, as the policy
// engine decides.
//
// The engine is asked twice: about the Job in the cache, to learn when to look again,
// and right before the deletion about the Job as the API server has it. The deletion
// has UID and resourceVersion as preconditions, so it fails for a Job that has changed
// meanwhile, and for a new Job of the same name. The time that counts is the earlier of
// two clocks, this machine's and the API server's: one clock that is ahead deletes
// nothing too early.
//
// The built-in TTL-after-finished controller ignores spec.managedBy. Beside it, this
// one deletes only Jobs that are managed here; in place of it (ReplaceBuiltin), it
// deletes all Jobs, whoever manages them.
package ttl

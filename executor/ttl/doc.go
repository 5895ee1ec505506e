// Package ttl deletes finished Jobs whose time to live is over, as the policy
// engine says.
//
// The decision is made twice: from the cache, to know when to look, and from a
// read past every cache, right before the deletion. That is conditional on UID and
// resourceVersion, so a Job that was changed in between, or made anew under its
// name, is not hit. Time is the earlier of two clocks, ours and the API server's,
// so that one of them running ahead deletes nothing early.
//
// Beside the built-in TTL-after-finished controller, which knows no
// spec.managedBy, only our own Jobs are looked at; in place of it (ReplaceBuiltin)
// all are, whoever manages them: the field asks the cluster, not a controller.
package ttl

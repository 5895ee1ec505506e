// Package leaderelection elects one leader among replicas by a Kubernetes Lease, and
// keeps the other replicas from writing.
//
// It uses client-go's leader election, which tells a leader when its lease is lost. A
// process that was frozen (SIGSTOP, a suspended machine) learns this late. Until then it
// would write beside the new leader. So Election.Fence wraps every client of a replica.
// It refuses a write unless the lease was renewed less than its duration ago, and nobody
// else was seen to hold the lease since.
//
// One case is left that no client can prevent: a write that the kernel had before the
// process was frozen may arrive later. Invariants I1 to I3 still hold, because status writes
// and patches carry UIDs and resource versions. I6 may break for a moment, because a creation
// carries neither: the surplus pod is deleted, and every pod still counts once.
package leaderelection

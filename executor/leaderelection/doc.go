// Package leaderelection lets one replica lead at a time, the holder of a
// Kubernetes Lease, and keeps the others from writing.
//
// client-go's leader election, on which this stands, tells a leader only that its
// lease is lost. A process that was frozen (SIGSTOP, a suspended machine) would
// write until it hears of that, beside the new leader. So every client of a
// replica is wrapped by Election.Fence, which refuses a write unless the lease was
// renewed less than its duration ago and nobody else was seen to hold it since.
//
// What no client can prevent: a write that was handed to the kernel before the
// process was frozen may arrive later. Invariants I1 to I3 and I6 hold all the
// same, because writes carry UIDs and resource versions.
package leaderelection

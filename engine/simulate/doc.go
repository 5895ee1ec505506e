// Package simulate plays a Job in virtual time, against the real engine.
//
// A Scenario holds the Job, what happens to its pods (by script, or drawn from a
// seed), and what its user does meanwhile. Play is a pure function from it to a
// Result: the timeline, the life of each pod, and the final status. It needs no
// cluster, no clock and no waiting, and the same scenario always gives the same
// result. Repeat plays it with many seeds and says how the results are distributed.
//
// The simulated executor is ideal: it sees every change at once, and its calls take no time and
// never fail, except that a quota may refuse pods for a while (QuotaUntil). Every pod finds a node at once, and
// one node may be lost (NodeLost). So a play shows how the policy treats a Job, not how fast a
// cluster is. Pods need StartDelay before they run, and StopDelay to end after they
// were deleted.
//
// Of the kubelet it plays what decides how a pod ends: the restart policies and rules of
// containers, init containers, sidecars, the pod's deadline and its grace period. A
// container is restarted at once the first time, then after 10 s, doubled with each further
// restart up to 5 min.
package simulate

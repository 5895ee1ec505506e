// Package simulate plays a Job in virtual time, against the real engine.
//
// A Scenario holds the Job, what happens to its pods (by script, or drawn from a
// seed), and what its user does meanwhile. Play is a pure function from it to a
// Result: the timeline, the life of each pod, and the final status. It needs no
// cluster, no clock and no waiting, and the same scenario always gives the same
// result. Repeat plays it with many seeds and says how the results are distributed.
//
// The simulated executor is ideal: it sees every change at once, and its calls never
// fail and take no time. So a play shows how the policy treats a Job, not how fast a
// cluster is. Pods need StartDelay before they run, and StopDelay to end after they
// were deleted.
//
// A container that fails in a pod with the restart policy OnFailure is restarted as
// the kubelet does it: at once after the first failure, then after 10 s, doubled
// with each further failure up to 5 min.
package simulate

// Package simulate plays a Job in virtual time, against the real engine.
//
// A Scenario says what the Job is, how its pods fare (by script, or by a seed), and
// what its user does meanwhile. Play is a pure function from it to a Result: the
// timeline, the life of each pod, and the final status. No cluster, no clock and no
// waiting is needed, and the same scenario always gives the same result. Repeat
// plays it with many seeds and says how the results are distributed.
//
// The executor that is simulated is an ideal one: it sees everything at once, none
// of its calls fail or take time, and it creates whatever the engine asks for. So a
// play shows what policy does to a Job, not how fast a cluster is. Pods need
// StartDelay to run and StopDelay to end after they were deleted.
//
// A container that fails in a pod with the restart policy OnFailure is restarted as
// the kubelet does it: at once after the first failure, then after 10 s, doubled
// with each further failure up to 5 min.
package simulate

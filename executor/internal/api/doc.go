// Package api makes the executor's calls to the API server: about Jobs and their pods,
// CronJobs, Workloads and PodGroups. It bounds how long each call takes, and says what
// became of it. It decides nothing, and it enqueues nothing.
//
// Client's calls are about one object each. Pods writes one Job's pods: every answer is part
// of the Job's tracker before the call returns, so the next snapshot holds it.
//
// A write takes effect, or is refused, or has an unknown outcome (OutcomeUnknown). A caller
// that must know the outcome reads the object from the API server.
//
// Server knows which version of Kubernetes the API server has, and whether it serves the API of gangs.
// It asks at the start, after each new connection, and when it is told to. How Jobs, CronJobs
// and times to live are managed never depends on the answers: they lead to a log line, a metric,
// a warning if the API server is newer than the types that this program was compiled with, and
// a reason not to be ready if gangs are wanted and cannot be had.
package api

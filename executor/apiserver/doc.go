// Package apiserver knows which version of Kubernetes the API server has, and whether it
// serves the API of gangs.
//
// It asks at the start, after each new connection, and when it is told to. How Jobs, CronJobs
// and times to live are managed never depends on the answers: they lead to a log line, a metric,
// a warning if the API server is newer than the types that this program was compiled with, and
// a reason not to be ready if gangs are wanted and cannot be had.
package apiserver

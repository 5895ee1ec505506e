// Package fidelity holds the API server in memory against a real one.
//
// From a seed it draws a sequence of requests: on Jobs, CronJobs, pods, events,
// leases and config maps, good and bad, plain and conditional, in both media types.
// Both servers are asked the same, one request at a time, and must answer the
// same: status code, warnings, and body. Watches of all kinds are open meanwhile
// and must have told the same of each object.
//
// What follows from the server alone is made comparable first: UIDs, generated
// names and resource versions get numbers in the order in which they are first
// seen, times lose their value, and managed fields are left out.
//
// To look at one sequence, or at more:
//
//	go test ./world/apiserver/fidelity -args -apiserver.first=7 -apiserver.seeds=1 -apiserver.story
package fidelity

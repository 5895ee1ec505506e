// Package fidelity compares the API server in memory with a real one.
//
// From a seed it draws a sequence of requests: on Jobs, CronJobs, pods, events,
// leases and config maps, good and bad, plain and conditional, in both media types.
// Both servers get the same requests, one at a time, and must give the same answers:
// status code, warnings, and body. Watches of all kinds are open meanwhile and must
// deliver the same events about each object.
//
// Values that a server chooses by itself are made comparable first: UIDs, generated
// names and resource versions get numbers in the order in which they are first
// seen, times lose their value, and managed fields are left out.
//
// To play one sequence, or others:
//
//	go test ./simulated/world/apiserver/fidelity -args -apiserver.first=7 -apiserver.seeds=1 -apiserver.story
package fidelity

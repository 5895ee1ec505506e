// Package cron is a differential oracle: it holds this project's CronJob and
// TTL-after-finished controllers against the built-in ones of Kubernetes.
//
// Two API servers, with one pair of controllers each, all in this process. Time is
// virtual: both sides are told the same time, which stands still while they work
// and then jumps, by seconds or by months. In every world many CronJobs live side
// by side, each with a spec and a fate of its own; after every jump, and what
// users and Jobs do at that time, both sides come to rest and must show the same:
// status, Jobs with names and annotations, events by type, reason and text.
//
//	go test ./conformance/cron                                   what CI runs
//	go test ./conformance/cron -args -cron.worlds=50             more
//	go test ./conformance/cron -args -cron.seed=17 -cron.worlds=1  one world again
//
// Deliberate differences stand with name and reason in differences.go.
package cron

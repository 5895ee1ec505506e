// Package cron is a differential oracle: it holds this project's CronJob and
// TTL-after-finished controllers against the built-in ones of Kubernetes.
//
// A life is one CronJob, or one Job with a time to live, with a spec of its own, and
// what users and Jobs do to it while time goes by in jumps, of seconds or of months.
// It is lived twice in virtual time (package virtual): with the built-in controllers
// and with ours, which run through shorter jumps and sleep through longer ones, as
// over a restart. After each jump and each deed both sides must show the same:
// status, Jobs with names and annotations, events by type, reason and text.
//
//	go test ./conformance/cron                                     what CI runs
//	go test ./conformance/cron -args -cron.crons=5000 -cron.ttls=0 more
//	go test ./conformance/cron -args -cron.seed=17 -cron.crons=1 -cron.ttls=0  one life again
//
// Deliberate differences stand with name and reason in differences.go. As in package
// conformance, a view that differs because a side saw something first is found by
// letting the built-in side see it later.
package cron

// Package cron compares this project's CronJob and TTL-after-finished controllers with
// the built-in ones of Kubernetes.
//
// A life is one CronJob, or one Job with a time to live, with a spec of its own, and
// what users and Jobs do to it while time goes by in jumps, of seconds or of months.
// It is played twice in virtual time (package virtual): with the built-in controllers
// and with ours. The controllers run during shorter jumps, and are off during longer ones,
// as over a restart. After each jump and each deed both sides must show the same:
// status, Jobs with names and annotations, events by type, reason and text.
//
//	go test ./simulated/parity/cron                                                   what CI runs
//	go test ./simulated/parity/cron -args -cron.crons=5000 -cron.ttls=0               more
//	go test ./simulated/parity/cron -args -cron.seed=17 -cron.crons=1 -cron.ttls=0    one life again
//
// differences.go lists the deliberate differences with name and reason. As in package
// parity, a view may differ because a side saw something first. Then the life is played
// again on the built-in side, which sees it later.
package cron

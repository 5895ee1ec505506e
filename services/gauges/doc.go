// Package gauges exports what the executor knows of its Jobs and CronJobs as metrics: which Jobs wait, make no
// progress, have pods that cannot start or no retry left, which runs were missed, and when the next one is due.
//
// They are counted when somebody reads them, from the executor's caches and its last decisions. No series has
// the name of an object, so their number does not grow with that of Jobs and CronJobs.
package gauges

// Package debugpages serves the last decisions as a list of Jobs and one of CronJobs. A
// query selects some of them.
package debugpages

// Package debugpages serves what the executor decided last: a list of Jobs and one of
// CronJobs. Both can be narrowed to those that a person looks for.
package debugpages

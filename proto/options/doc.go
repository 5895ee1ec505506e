// Package options reads the options of Jobs and CronJobs (message PolicySpec) from what a
// person wrote, and finds what is wrong with them.
//
// Names, types and limits come from the messages themselves, so a new field needs nothing
// here. protojson reads the same messages, but it stops at the first mistake, does not
// say what was expected, and has no limits; its enum values are not those of Kubernetes.
package options

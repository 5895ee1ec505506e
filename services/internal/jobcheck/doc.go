// Package jobcheck says what is wrong with a Job or CronJob before it runs: what the
// API server would refuse, and what it accepts although it will surprise the user.
//
// Each check is a function from an object to findings; checks.go lists them. A finding
// has the path of a field and, from that, a line of the file.
package jobcheck

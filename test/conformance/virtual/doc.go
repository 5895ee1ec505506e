// Package virtual runs controllers in virtual time: Kubernetes' own and ours, each
// in a testing/synctest bubble beside an API server in memory.
//
// Nothing in a bubble happens by chance that decides something: how late a
// controller sees an object, how long a request takes, and when a controller is
// killed is drawn from the case (Lateness). Hours pass in milliseconds, because time
// goes on only when everybody waits.
package virtual

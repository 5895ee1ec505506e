// Package virtual runs controllers in virtual time: Kubernetes' own and ours, each
// in a testing/synctest bubble beside an API server in memory.
//
// Nothing that decides a result happens by chance: how late a controller sees an object, how
// long a request takes, and when a controller is killed is drawn from the seed of the case
// (Lateness). Hours pass in milliseconds, because time goes on only when all goroutines wait.
package virtual

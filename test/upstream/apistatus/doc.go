// Package apistatus compares the rules of jobpolicy.dev/engine/statusrules with the real
// API server.
//
// Walkers create Jobs of every shape that the rules distinguish and write random
// statuses to them, about half of them bad. The API server must accept what the rules
// accept, refuse what they refuse, and name the same fields. Rules compare a status
// with the one before, so a walker continues from each accepted status: every stored
// status is one that the API server has accepted.
//
// No controller for Jobs runs, so all statuses are written by walkers. To replay a
// failure, run the test with the seed that it printed:
//
//	go test ./upstream/apistatus -args -apistatus.seed=7 -apistatus.transitions=20000
package apistatus

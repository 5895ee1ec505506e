// Package apistatus holds the rules of jobpolicy.dev/engine/jobstatus against
// the real API server.
//
// Walkers make Jobs of every shape that the rules tell apart and write random
// statuses to them, about half of them bad. The API server must accept what the
// rules accept, refuse what they refuse, and blame the same fields. Rules compare
// a status with the one before, so a walker goes on from each status that was
// accepted: no status is ever there that the API server would not have let in.
//
// No controller for Jobs runs, so each status is a walker's. To replay what
// failed, run the test with the seed that it printed:
//
//	go test ./apistatus -args -apistatus.seed=7 -apistatus.transitions=20000
package apistatus

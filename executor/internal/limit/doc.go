// Package limit bounds how many writes a Job has in flight at the API server, so
// that a large Job does not fill the server's queue in front of the others.
//
// Only a batch with more writes than Config.PerJob is timed and limited. For it, a Limiter
// adapts its limit by the algorithm of TCP Vegas:
//
//   - The baseline is the mean latency of writes while at most 2 of the batch are in
//     flight. The observed latency is the mean of all others.
//   - Of the writes in flight, limit × (1 − baseline/observed) wait in the server's
//     queue: a write waits for as long as it takes longer than the baseline.
//   - After each write the limit falls by 1/limit if more than 2 wait, and else grows
//     by as much. It stays between 2 and the most that a Job may have.
//   - If the baseline is older than 5 s, a large batch begins with 4 writes, 2 at a
//     time, to measure it again.
//   - While no other Job is active, the limit is at least Config.Alone.
//
// Every Job has its own Limiters, because admission webhooks make writes slower in
// some namespaces than in others. A Pool bounds the writes of all Jobs together, by a
// Semaphore. Package controller bounds reconciles by another one.
//
// Weighed against failsafe-go v0.9 (adaptivelimiter): that takes its baseline from a long
// average, refuses what is above the limit by default, and has no slow start of a batch.
package limit

// Package world is a cluster in virtual time. The real executor, with client-go's
// real informers, and the real engine run in it against an API server in memory,
// beside users, kubelets and other controllers, while requests, watches, the engine
// and the executor itself fail. Judges look at every write.
//
// A plan is everything that will happen, drawn from one seed before anything runs,
// so that it can be read, replayed and made smaller. A world plays one plan inside
// one testing/synctest bubble: hours pass in milliseconds.
//
// Order comes from time. Every request, answer and event of a watch travels for a
// while that follows from the seed and from what it is, to the nanosecond, so that
// nearly nothing happens at the same instant, and the same seed gives nearly always
// the same log of writes: 225 of 230 worlds (seeds 1 to 50 and 111 to 290) had it when
// one process played them twice on a machine busy with other work. Where logs differ,
// timers of two pods ran out in the very same instant, or goroutines that were ready in
// the same instant ran in another order.
//
// A world has about 140 requests, 36 watches, 95 decisions and 190 writes, and takes 40 to
// 55 ms of one processor of that machine: 45% the server's handlers, validation and
// storage; 20% client-go's requests, decoding and informers; 16% the executor; 10% the
// engine and its messages; 2% the collection of garbage; the rest the network, the plan and
// the judges.
//
// # What the judges excuse
//
// A judge asks of each fact whether whoever wrote must know it: it did that itself, it
// began after it, or it is older than views are. Views are two minutes old at most, and
// ten seconds (30 where requests are limited) if nothing has failed for two minutes.
// Besides:
//
//   - I2, I4: a pod that was counted counts once more each time somebody puts its
//     finalizer back, or changes whose it is: nothing in the cluster tells that it was.
//   - I2: a pod that ran when its Job failed, or that ended before that unseen, counts as
//     failed, whatever its end.
//   - I6: of pods, ends and completed indexes that another executor made, recorded or
//     wrote a moment ago, an executor need not know.
//   - I12: an end that only pods tell of that are gone, strays or somebody else's is not
//     known to an executor that began later. A success without finalizer ends a row of
//     failures for one that finds it so. In one second, a success goes last. A pod that
//     said two things of its end may be either.
//   - liveness: of the retry delay, what may count as failed does, and a success that
//     nothing in the cluster tells of any more does not end a row of failures.
//   - late: a failed pod with limits per index waits for the next pod of its index.
//   - verdicts: a pod that somebody let go a moment ago may still count.
//   - cron: while clocks are wrong, runs may be repeated; finished runs of a time to come
//     are kept. For the concurrency policy, a run that another executor started a moment
//     ago need not be known.
//   - ttl: after a clock was behind, a Job may be ten minutes late to go.
//   - writes: each write by others, each fault and each change of a spec pays for some.
package world

// Package world simulates a cluster in virtual time. The real executor, with
// client-go's real informers, and the real engine run against an API server in memory,
// together with users, kubelets and other controllers. Requests, watches, the engine
// and the executor itself fail. Judges check every write.
//
// A plan is everything that will happen. It is drawn from one seed before anything
// runs, so it can be read, replayed and shrunk. A world plays one plan inside one
// testing/synctest bubble: hours pass in milliseconds. A few worlds last weeks: some of
// those with CronJobs, whose clocks change meanwhile.
//
// Virtual time puts everything in order. How long each request, answer and watch event
// takes, to the nanosecond, follows from the seed and from its content. So
// hardly anything happens at the same instant. A reconcile begins a nanosecond after it is
// due, when all that came with its cause has been handled. So the same seed gives the same log of
// writes: docs/worlds.md has the exceptions.
//
// A world has about 150 writes. docs/worlds.md says how long it takes, and what
// takes the time.
//
// In worlds of package podjob (-world.podjob) a controller made with it stands in for the
// executor: each Job is an object with one group, and nothing has CronJobs, a lease or times to
// live. The same judges check it. Groups of one owner that want the same names are left to the
// tests of executor/podjob.
//
// In worlds of upstream (-world.upstream) Kubernetes' own controllers stand in for the executor. What the
// judges find there is counted, and is no failure: docs/upstream-findings.md.
//
// # What the judges tolerate
//
// For each fact, a judge asks whether the writer must have known it. The writer must if it
// caused the fact, if it started later, or if the fact is older than a view can be. A
// view is at most two minutes old. If nothing has failed for two minutes, it is at most
// ten seconds old (30 if requests are limited). In addition:
//
//   - I2, I4: a counted pod may count again each time somebody puts its finalizer back
//     or changes its owner, because nothing in the cluster shows that it was counted.
//   - I2: a pod that ran when its Job failed, or whose end before that was not seen,
//     counts as failed, whatever its end. The policy may ignore it by one of its conditions (I1).
//   - I6: an executor need not know the pods, ends and completed indexes that another
//     executor created, recorded or wrote a moment ago.
//   - I6: an executor need not count a success of a pod that the Job has lost, not even if a
//     webhook keeps the pod's finalizer.
//   - I10: a pod may have reported different times of its end. If these decide which of two
//     failed pods of an index came last, the order is not judged.
//   - I12: an executor that started after an end need not know it if the pods that show it
//     are gone, no longer selected, or owned by another Job.
//   - I12: an executor need not know an end if another executor, or a second controller,
//     released the pod a moment after the end, and no pod shows the end any more.
//   - I12: a success without finalizer ends a row of failures for an executor that sees it.
//   - I12: of ends in the same second, the success counts as the last.
//   - I12: a pod that reported two different ends may count as either.
//   - I12: podjob remembers no pod, so a failed pod delays nothing once its Job has lost it. The same
//     holds for a deleted one that is released and gone, or released before it has ended.
//   - event, late: podjob sends no events, and does one Job after the other.
//   - status, liveness: podjob adopts no pod, so a pod that its Job has lost counts nowhere. It has
//     not seen the end of a pod that its Job lost at once.
//   - runaway: podjob tries a creation that failed again every ten seconds, and not ever later.
//   - pod: podjob gives pods names and annotations of its own; its own tests look at them.
//   - deletion: podjob deletes the pods that it has created for a Job that is gone.
//   - I9: a pod that says that podjob has created it, for a Job that never was, may be deleted, too.
//   - liveness: every failure that may count adds to the retry delay, and a success that
//     nothing in the cluster shows any more does not end a row of failures.
//   - liveness: if requests may always list only a few failed pods, one that waits long for the
//     next pod of its index may hide others.
//   - options: the delay after a quota refused a pod is judged between two tries if nothing happened meanwhile to the
//     Job or to executors. How many refusals in a row the executor has counted before that is not known.
//   - late: if clocks are set and pods being deleted become overdue by it, or are no longer overdue, an
//     executor notices when it next asks the engine about the Job.
//   - late: a failed pod with limits per index waits for the next pod of its index.
//   - verdicts: a pod that somebody released a moment ago may still count. A pod that
//     another Job has left carries that Job's failures of its index, and they count.
//   - status: a recorded pod that runs again, and has the finalizer, is counted when it ends again.
//   - lease: an executor that starts after somebody deleted the lease cannot know its holder.
//   - cron: while clocks are wrong, runs may be repeated, and finished runs of future
//     times are kept. For the concurrency policy, an executor need not know a run that
//     another executor started a moment ago.
//   - cron: a run may start late, or not at all, if something hindered the executors in the
//     minute after its time, if its starting deadline is below five seconds, or beside
//     another run that forbids it. The latest run that was missed because of a hindrance
//     starts after it, unless there is a starting deadline. A wrong clock excuses runs
//     until a day after it was set right.
//   - event: the end of a Job needs no event if the executor died, or if an event of it
//     failed after the end. An executor may send the event of an end that another one wrote if
//     a status of its own has got no answer since then: if both decided in the same second,
//     nothing distinguishes their conditions.
//   - ttl: after a clock was behind, a Job may be deleted ten minutes late.
//   - A second controller, the built-in one that somebody left on: a Job that it has
//     touched may be late for four minutes after that. Executors that stand down leave
//     such a Job alone until the controller has touched no Job for ten minutes. After that
//     the Job comes to rest as any other. An executor need not know the ends of pods that
//     the controller released a moment ago.
//   - metrics: they are compared while nothing hinders the executor. Objects to which something
//     happened lately may count or not. Who reads metrics sees a Job's progress at the next
//     reading, and after a restart knows of a Job whose pods have ended only what happens from
//     then on. While the clocks of a zone change, no run of its CronJobs is certain.
//   - writes: each write by others, each fault and each change of a spec allows some.
package world

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
)

// looks ends a tape with a look after some time of calm.
func looks(after time.Duration, play func(*tape)) func(*tape) {
	return func(tp *tape) {
		play(tp)
		tp.judge.faultsEnded(tp.now)
		tp.wait(after)
		tp.judge.look(tp.now)
	}
}

// rests ends a tape after an hour of calm.
func rests(play func(*tape)) func(*tape) { return looks(time.Hour, play) }

func active(n int32) func(*batchv1.JobStatus) { return func(s *batchv1.JobStatus) { s.Active = n } }

// At rest, the status agrees with the pods, and nothing is left to do.
func TestEnd(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"two pods run":                  {play: rests(func(tp *tape) { starts(tp) })},
		"it says that three run":        {want: []string{"status"}, play: rests(func(tp *tape) { starts(tp); tp.status(executorA, "job-a", active(3)) })},
		"the end came a while ago":      {play: looks(time.Second, running(func(tp *tape) { tp.ends("a-0", 0) }))},
		"an end is not accounted for":   {want: []string{"status", "status", "status"}, play: rests(running(func(tp *tape) { tp.ends("a-0", 0) }))},
		"a recorded pod is not counted": {want: []string{"status", "liveness"}, play: rests(running(func(tp *tape) { fails(tp, "a-0") }))},
		"one pod runs of two": {want: []string{"liveness"}, play: rests(running(func(tp *tape) {
			fails(tp, "a-0")
			counts(tp)
		}))},
		"one pod runs of two, and the quota is used up": {play: rests(func(tp *tape) {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "q"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
			}}
			tp.commit(user, "create", "resourcequotas", "", quota, quota)
			starts(tp)
			fails(tp, "a-0")
			counts(tp)
		})},
		"a suspended Job's pod runs": {want: []string{"status", "liveness"}, play: rests(running(func(tp *tape) { tp.spec(suspend) }))},
		"three pods run of two": {want: []string{"liveness"}, play: rests(running(func(tp *tape) {
			tp.pod(user, "job-a", "a-2", noIndex)
			tp.status(executorA, "job-a", active(3))
		}))},
	})
}

// At rest, a Job that must end has ended.
func TestEndOfAJobThatMustEnd(t *testing.T) {
	losesAFailure := func(after time.Duration) func(*tape) {
		return rests(func(tp *tape) {
			tp.judge.podjob = true
			starts(tp, policyOn(42, batchv1.PodFailurePolicyActionFailJob))
			tp.ends("a-0", 42)
			tp.wait(after)
			tp.edit("webhook", "a-0", func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].UID = "Other", "other" })
			tp.pod(executorA, "job-a", "a-2", noIndex)
		})
	}
	runStreams(t, map[string]streamCase{
		"podjob could see a failure that fails it, and it goes on": {want: []string{"liveness"}, play: losesAFailure(time.Hour)},
		"a failure that fails it was given away before podjob saw": {play: losesAFailure(time.Second)},
		"too many failed, and it goes on": {want: []string{"liveness", "liveness"}, play: rests(func(tp *tape) {
			starts(tp, noRetries)
			fails(tp, "a-0")
			counts(tp)
		})},
		"a completed index that it asks for no more, and then again, and it does not run": {want: []string{"liveness"}, play: rests(dropsAnIndex)},
		"all succeeded, and it goes on": {want: []string{"liveness"}, play: rests(running(func(tp *tape) {
			tp.ends("a-0", 0)
			tp.ends("a-1", 0)
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active = 0; succeededList(s, "a-0", "a-1") })
			releasesBoth(tp)
			counts(tp)
		}))},
		"its containers restarted too often, and it goes on": {want: []string{"liveness"}, play: rests(func(tp *tape) {
			starts(tp, noRetries, func(job *batchv1.Job) { job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure })
			tp.edit(kubelet, "a-0", func(pod *corev1.Pod) { pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}} })
		})},
		"its deadline passed, and it goes on": {want: []string{"liveness"}, play: rests(func(tp *tape) { starts(tp, deadline(60)) })},
		"a verdict, and nothing to wait for": {want: []string{"status", "liveness"}, play: rests(func(tp *tape) {
			starts(tp, noRetries)
			fails(tp, "a-0")
			announcesFailure(tp)
		})},
	})
}

// A Job that was shrunk and changed again keeps its count, also if it is resized after its end.
func TestEndOfAJobThatKeepsItsCount(t *testing.T) {
	ends := func(parallelism int32, changes ...func(*batchv1.Job)) func(*tape) {
		return rests(func(tp *tape) {
			tp.job("a", indexedJob(2), noRetries)
			completesAnIndex(tp)
			tp.spec(sized(1, parallelism))
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.CompletedIndexes = "" })
			fails(tp, "a-0")
			announcesFailure(tp)
			counts(tp)
			announces(tp, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
			tp.event(executorA, "job-a", batchv1.JobReasonBackoffLimitExceeded, 1)
			tp.wait(time.Second)
			for _, change := range changes {
				tp.spec(change)
			}
		})
	}
	runStreams(t, map[string]streamCase{
		"changed again":                    {play: ends(4)},
		"resized after its end":            {play: ends(4, sized(3, 3))},
		"resized twice after its end":      {play: ends(4, sized(3, 3), sized(2, 2))},
		"not changed again":                {want: []string{"status"}, play: ends(1)},
		"changed again only after its end": {want: []string{"status"}, play: ends(1, sized(3, 4))},
	})
}

// completesAnIndex starts indexes 0 and 1, and index 1 succeeds.
func completesAnIndex(tp *tape) {
	tp.pod(executorA, "job-a", "a-0", 0)
	tp.pod(executorA, "job-a", "a-1", 1)
	tp.ends("a-1", 0)
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.StartTime, s.Active, s.Succeeded, s.CompletedIndexes = new(metav1.NewTime(tp.now)), 1, 1, "1"
	})
	tp.release(executorA, "a-1")
}

// dropsAnIndex resizes a Job so that it forgets the success of index 1. Index 0 runs.
func dropsAnIndex(tp *tape) {
	tp.job("a", indexedJob(2))
	completesAnIndex(tp)
	tp.spec(sized(1, 1))
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Succeeded, s.CompletedIndexes = 0, "" })
	tp.spec(sized(2, 2))
}

// At rest, nothing is left over, and no pod waits longer than its retry delay.
func TestEndLeavesNothing(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"its time to live is over": {want: []string{"ttl"}, play: rests(func(tp *tape) {
			starts(tp, timeToLive(60))
			completes(tp)
		})},
		"its time to live is not over": {play: rests(func(tp *tape) {
			starts(tp, timeToLive(6000))
			completes(tp)
		})},
		"a pod of a Job that is gone": {want: []string{"orphans"}, play: rests(func(tp *tape) {
			tp.pod(user, tp.job("a"), "a-0", noIndex)
			tp.removes(user, "jobs", "job-a")
		})},
		"a pod that waits for its replacement":                  {play: looks(settles+time.Minute, waitsLong)},
		"a recorded failure whose replacement is being deleted": {want: []string{"status", "status"}, play: rests(recordedBesideItsReplacement)},
		"the same, released and counted": {play: rests(func(tp *tape) {
			recordedBesideItsReplacement(tp)
			tp.release(executorA, "a-0")
			counts(tp)
		})},
		"a pod that waits for its replacement too long": {want: []string{"liveness"}, play: rests(waitsLong)},
	})
}

// waitsLong lets a pod fail whose index failed so often before that the next pod comes after minutes.
func waitsLong(tp *tape) {
	tp.job("a", indexedJob(1), retries(50))
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.StartTime = new(metav1.NewTime(tp.now)) })
	tp.pod(executorA, "job-a", "a-0", 0, failedBefore("20"))
	tp.ends("a-0", 1)
}

// recordedBesideItsReplacement records a failed pod of an index. The next pod of the index is being
// deleted.
func recordedBesideItsReplacement(tp *tape) {
	tp.job("a", indexedJob(1), func(job *batchv1.Job) {
		job.Spec.BackoffLimitPerIndex, job.Spec.PodReplacementPolicy = new(int32(50)), new(batchv1.Failed)
	})
	tp.pod(executorA, "job-a", "a-0", 0, failedBefore("0"))
	tp.ends("a-0", 1)
	tp.wait(20 * time.Second)
	tp.pod(executorA, "job-a", "a-1", 0, failedBefore("1"))
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) {
		s.StartTime, s.Active, s.UncountedTerminatedPods = new(metav1.NewTime(tp.now)), 1, &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a-0"}}
	})
	tp.deletes(user, "a-1")
	tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.Active, s.Terminating = 0, new(int32(1)) })
}

// The retry delay of an index holds back only this index. An executor whose requests always
// list only a few failed pods may not see the others.
func TestAnIndexThatWaitsHoldsBackNoOther(t *testing.T) {
	waits := func(parallelism int32, fewRows bool, short ...string) func(*tape) {
		return looks(settles+time.Minute, func(tp *tape) {
			tp.judge.fewRows = fewRows
			tp.job("a", indexedJob(2), func(job *batchv1.Job) {
				job.Spec.Parallelism, job.Spec.BackoffLimitPerIndex = &parallelism, new(int32(50))
			})
			tp.status(executorA, "job-a", func(s *batchv1.JobStatus) { s.StartTime = new(metav1.NewTime(tp.now)) })
			tp.pod(executorA, "job-a", "a-0", 0, failedBefore("20"))
			tp.ends("a-0", 1)
			for _, failures := range short {
				tp.pod(executorA, "job-a", "a-1", 1, failedBefore(failures))
				tp.ends("a-1", 1)
			}
		})
	}
	runStreams(t, map[string]streamCase{
		"both wait long":                          {play: waits(2, false, "20")},
		"one waits too long":                      {want: []string{"liveness"}, play: waits(2, false, "0")},
		"one waits too long, hidden by the other": {play: waits(2, true, "0")},
		"one never starts":                        {want: []string{"liveness"}, play: waits(2, false)},
		"one never starts, and has no turn":       {play: waits(1, false)},
	})
}

// A Job whose policy cannot be read starts no pods.
func TestAnUnreadablePolicy(t *testing.T) {
	has := func(policy string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Annotations = map[string]string{wire.Policy: policy} }
	}
	runStreams(t, map[string]streamCase{
		"nothing starts":               {play: rests(func(tp *tape) { tp.job("a", has(unreadable)) })},
		"nothing starts, and it could": {want: []string{"status", "liveness"}, play: rests(func(tp *tape) { tp.job("a", has("{job: {}}")) })},
		"pods start":                   {want: []string{"I6"}, play: func(tp *tape) { starts(tp, has(unreadable)) }},
		"no more start": {play: rests(func(tp *tape) {
			starts(tp)
			tp.spec(has(unreadable))
			fails(tp, "a-0")
			counts(tp)
		})},
		"no more start, and they could": {want: []string{"liveness"}, play: rests(func(tp *tape) {
			starts(tp)
			tp.spec(has("{job: {}}"))
			fails(tp, "a-0")
			counts(tp)
		})},
		"no more start, and the last valid options are known": {want: []string{"liveness"}, play: rests(func(tp *tape) {
			starts(tp, has("{job: {}}"))
			tp.spec(setsPolicy(unreadable))
			fails(tp, "a-0")
			counts(tp)
		})},
		"pods start, and they may": {play: func(tp *tape) { starts(tp, has("{job: {}}")) }},
	})
}

// A Job is deleted when its time to live is over, and not before.
func TestTimeToLive(t *testing.T) {
	deleteAfter := func(d time.Duration, changes ...func(*batchv1.Job)) func(*tape) {
		return func(tp *tape) {
			starts(tp, changes...)
			completes(tp)
			tp.wait(d)
			tp.judge.clocksSet(tp.now, time.Hour)
			tp.removes(executorA, "jobs", "job-a")
		}
	}
	ttl := timeToLive(60)
	runStreams(t, map[string]streamCase{
		"over":          {play: deleteAfter(time.Minute, ttl)},
		"not over":      {want: []string{"ttl"}, play: deleteAfter(59*time.Second, ttl)},
		"without limit": {want: []string{"ttl"}, play: deleteAfter(time.Hour)},
		"over, and its policy cannot be read": {want: []string{"ttl"}, play: func(tp *tape) {
			starts(tp, ttl)
			tp.spec(func(job *batchv1.Job) { job.Annotations = map[string]string{wire.Policy: unreadable} })
			completes(tp)
			tp.wait(time.Hour)
			tp.removes(executorA, "jobs", "job-a")
		}},
		"over, by its policy": {play: deleteAfter(time.Second, ttl, func(job *batchv1.Job) {
			job.Annotations = map[string]string{wire.Policy: "{job: {ttlSecondsAfterComplete: 1}}"}
		})},
		"over, by the default of its policy": {play: deleteAfter(time.Second, func(job *batchv1.Job) {
			job.Annotations = map[string]string{wire.Policy: "{job: {defaultTtlSecondsAfterFinished: 1}}"}
		})},
		"not over, by the policy for another outcome": {want: []string{"ttl"}, play: deleteAfter(time.Second, func(job *batchv1.Job) {
			job.Annotations = map[string]string{wire.Policy: "{job: {ttlSecondsAfterFailed: 1}}"}
		})},
	})
}

// cron creates a CronJob that runs every minute.
func (tp *tape) cron(changes ...func(*batchv1.CronJob)) {
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cron"},
		Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent},
	}
	for _, change := range changes {
		change(cron)
	}
	tp.commit(user, "create", "cronjobs", "", cron, cron)
}

// starts a run for a scheduled time.
func (tp *tape) run(name string, at time.Time) types.UID { return tp.runBy(executorA, name, at) }

func (tp *tape) runBy(who, name string, at time.Time) types.UID {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("job-" + name),
		Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at.Format(time.RFC3339)},
		OwnerReferences: []metav1.OwnerReference{{Kind: "CronJob", Name: "c", UID: "cron", Controller: new(true)}},
	}, Spec: batchv1.JobSpec{ManagedBy: new(others), Selector: &metav1.LabelSelector{}}}
	tp.commit(who, "create", "jobs", "", job, job)
	return job.UID
}

// finishes ends a run.
func (tp *tape) finishes(uid types.UID) {
	tp.status("other", uid, func(s *batchv1.JobStatus) { setCondition(s, batchv1.JobComplete, "", tp.now) })
}

// finishesFour starts and ends four runs, a minute apart.
func (tp *tape) finishesFour() {
	for _, name := range []string{"w", "x", "y", "z"} {
		tp.finishes(tp.run(name, tp.now))
		tp.wait(time.Minute)
	}
}

// tells writes the CronJob's status.
func (tp *tape) tells(at time.Time, active ...types.UID) {
	cron := tp.stored["cron"].(*batchv1.CronJob).DeepCopy()
	cron.Status = batchv1.CronJobStatus{LastScheduleTime: new(metav1.NewTime(at))}
	for _, uid := range active {
		cron.Status.Active = append(cron.Status.Active, corev1.ObjectReference{UID: uid})
	}
	tp.commit(executorA, "update", "cronjobs", "status", cron, cron)
}

// policy sets a CronJob's concurrency policy.
func policy(p batchv1.ConcurrencyPolicy) func(*batchv1.CronJob) {
	return func(cron *batchv1.CronJob) { cron.Spec.ConcurrencyPolicy = p }
}

// runsAgain starts a run, whose Job its user deletes, and then the same run once more. The watch may
// show Jobs late, or the answer to the creation may be lost.
func runsAgain(late, lost bool) func(*tape) {
	return func(tp *tape) {
		tp.judge.lateJobs = late
		tp.cron()
		at := tp.now
		uid := tp.run("x", at)
		if lost {
			tp.judge.unanswered(executorA, types.NamespacedName{Namespace: "ns"}, tp.now)
		}
		tp.wait(time.Second)
		tp.removes(user, "jobs", uid)
		tp.wait(time.Second)
		tp.run("y", at)
	}
}

// A run starts at its time, once.
func TestCronJobs(t *testing.T) {
	suspend := func(cron *batchv1.CronJob) { cron.Spec.Suspend = new(true) }
	runStreams(t, map[string]streamCase{
		"a run":                 {play: func(tp *tape) { tp.cron(); tp.run("x", tp.now) }},
		"a run before its time": {want: []string{"cron"}, play: func(tp *tape) { tp.cron(); tp.run("x", tp.now.Add(time.Minute)) }},
		"a run before its time by a clock that is ahead": {play: func(tp *tape) {
			tp.cron()
			tp.judge.clocksSet(tp.now, time.Minute)
			tp.run("x", tp.now.Add(time.Minute))
		}},
		"a run within its deadline": {play: func(tp *tape) {
			tp.cron(func(cron *batchv1.CronJob) { cron.Spec.StartingDeadlineSeconds = new(int64(100)) })
			tp.run("x", tp.now.Add(-time.Minute))
		}},
		"a run after its deadline": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron(func(cron *batchv1.CronJob) { cron.Spec.StartingDeadlineSeconds = new(int64(10)) })
			tp.run("x", tp.now.Add(-2*time.Minute))
		}},
		"a run of a suspended CronJob":          {want: []string{"cron"}, play: func(tp *tape) { tp.cron(suspend); tp.run("x", tp.now) }},
		"a run twice":                           {want: []string{"cron"}, play: func(tp *tape) { tp.cron(); tp.run("x", tp.now); tp.run("y", tp.now) }},
		"a run twice, by two executors at once": {play: func(tp *tape) { tp.cron(); tp.run("x", tp.now); tp.runBy(executorB, "y", tp.now) }},
		"a run twice, by one after the other": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron()
			at := tp.now
			tp.run("x", at)
			tp.wait(2 * time.Minute)
			tp.runBy(executorB, "y", at)
		}},
		"a run again that nobody could know": {play: runsAgain(true, true)},
		"a run again that the watch showed":  {want: []string{"cron"}, play: runsAgain(false, true)},
		"a run again that was answered":      {want: []string{"cron"}, play: runsAgain(true, false)},
		"an older run":                       {want: []string{"cron"}, play: func(tp *tape) { tp.cron(); tp.run("x", tp.now); tp.run("y", tp.now.Add(-time.Minute)) }},
		"a run of somebody else's CronJob": {want: []string{"I9"}, play: func(tp *tape) {
			tp.cron(func(cron *batchv1.CronJob) { cron.Annotations = map[string]string{"jobpolicy.dev/managed-by": others} })
			tp.run("x", tp.now)
		}},
	})
}

// The concurrency policy and the history limits say which runs exist at once.
func TestRunsOfACronJobBesideEachOther(t *testing.T) {
	runStreams(t, map[string]streamCase{
		"two at once, forbidden": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron(policy(batchv1.ForbidConcurrent))
			tp.run("x", tp.now)
			tp.wait(time.Minute)
			tp.run("y", tp.now)
		}},
		"beside a run that somebody else has started long ago": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron(policy(batchv1.ForbidConcurrent))
			tp.runBy(user, "x", tp.now)
			tp.wait(3 * time.Minute)
			tp.run("y", tp.now)
		}},
		"beside a run that somebody else has started just now": {play: func(tp *tape) {
			tp.cron(policy(batchv1.ForbidConcurrent))
			tp.runBy(user, "x", tp.now.Add(-time.Minute))
			tp.run("y", tp.now)
		}},
		"one after the other": {play: func(tp *tape) {
			tp.cron(policy(batchv1.ForbidConcurrent))
			tp.finishes(tp.run("x", tp.now))
			tp.wait(time.Minute)
			tp.run("y", tp.now)
		}},
		"one replaces the other": {play: func(tp *tape) {
			tp.cron(policy(batchv1.ReplaceConcurrent))
			tp.removes(executorA, "jobs", tp.run("x", tp.now))
			tp.wait(time.Minute)
			tp.run("y", tp.now)
		}},
		"one deleted that is not to be replaced": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron()
			tp.removes(executorA, "jobs", tp.run("x", tp.now))
		}},
		"history": {play: func(tp *tape) {
			tp.cron()
			tp.finishesFour()
			tp.removes(executorA, "jobs", "job-w")
		}},
		"history, while a user deletes another run": {play: func(tp *tape) {
			tp.cron()
			tp.finishesFour()
			tp.removes(user, "jobs", "job-z")
			tp.removes(executorA, "jobs", "job-w")
		}},
		"history, long after a user deleted another run": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron()
			tp.finishesFour()
			tp.removes(user, "jobs", "job-z")
			tp.wait(5 * time.Minute)
			tp.removes(executorA, "jobs", "job-w")
		}},
		"history within the limit": {want: []string{"cron"}, play: func(tp *tape) {
			tp.cron()
			tp.finishes(tp.run("x", tp.now))
			tp.removes(executorA, "jobs", "job-x")
		}},
	})
}

func TestCronJobsAtRest(t *testing.T) {
	yearly := func(cron *batchv1.CronJob) { cron.Spec.Schedule = "0 0 1 1 *" }
	runStreams(t, map[string]streamCase{
		"an active run that is told":     {play: rests(func(tp *tape) { tp.cron(yearly); tp.tells(tp.now, tp.run("x", tp.now)) })},
		"an active run that is not told": {want: []string{"cron"}, play: rests(func(tp *tape) { tp.cron(yearly); tp.run("x", tp.now); tp.tells(tp.now) })},
		"a finished run that is told": {want: []string{"cron"}, play: rests(func(tp *tape) {
			tp.cron(yearly)
			tp.finishes(tp.run("x", tp.now))
			tp.tells(tp.now, "job-x")
		})},
		"a time that is too early": {want: []string{"cron"}, play: rests(func(tp *tape) {
			tp.cron(yearly)
			tp.tells(tp.now.Add(-time.Hour), tp.run("x", tp.now))
		})},
		"too much history": {want: []string{"cron"}, play: rests(func(tp *tape) {
			tp.cron(func(cron *batchv1.CronJob) { cron.Spec.Schedule = "0-3 0 1 1 *" })
			tp.finishesFour()
			tp.tells(tp.now)
		})},
		"a run that was not started": {want: []string{"cron"}, play: rests(func(tp *tape) { tp.cron() })},
		"a suspended CronJob":        {play: rests(func(tp *tape) { tp.cron(func(cron *batchv1.CronJob) { cron.Spec.Suspend = new(true) }) })},
	})
}

package tracker

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/writes"
)

// A worker reconciles a Job while the watches show it and its pods, and views read what is known.
// Nobody waits for ever; the race detector says whether the lock protects all of it.
func TestAJobIsUsedByManyGoroutines(t *testing.T) {
	jobs := NewJobs(nil)
	j := jobs.With(sharedKey, func(j *Job) { j.Observe(sharedJob(0), Watch) })
	var all sync.WaitGroup
	for _, use := range slices.Repeat(slices.Concat(usesOfPods(jobs, j), usesOfJob(jobs, j)), 2) {
		all.Go(func() {
			for n := range 100 {
				use(n)
			}
		})
	}
	all.Wait()
	if j.Gone(nil, true); j.Lifecycle() != Gone || j.LastDecision() != nil {
		t.Errorf("in the end the lifecycle is %v, and the last decision %v; want gone and none", j.Lifecycle(), j.LastDecision())
	}
}

var sharedKey = Key{Namespace: "ns", UID: "job"}

// sharedJob is a version of the Job, with a generation of its own.
func sharedJob(n int) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: sharedKey.Namespace, UID: sharedKey.UID, ResourceVersion: strconv.Itoa(n + 1), Generation: int64(n),
	}}
}

// comeAndGo is another Job, which many may forget at the same time.
func comeAndGo(jobs *Jobs, n int) {
	key := Key{Namespace: "ns", UID: "short"}
	job := sharedJob(n)
	job.UID = key.UID
	other := jobs.With(key, func(j *Job) { j.Observe(job, Watch) })
	other.Decided(time.Now(), nil, nil)
	other.Gone(nil, true)
	jobs.DropUnused(key)
	jobs.Existing(key.UID)
}

// usesOfPods has one method in each function, so that no lock of another one orders its accesses.
func usesOfPods(jobs *Jobs, j *Job) []func(n int) {
	return []func(n int){
		func(n int) { jobs.With(sharedKey, func(j *Job) { j.ObservePod(podOf(1, n+1, tracked), Watch) }) },
		func(n int) { jobs.Selecting(podOf(n, 1)) },
		func(int) { j.SweepPods(1, func(*podcache.Pod) *podcache.Pod { return nil }) },
		func(int) { j.BeginCall()() },
		func(int) { j.PodDeleted(uidOf(1)) },
		func(n int) { j.BeginCreate(NoIndex).Created(podOf(n+2, 1)) },
		func(n int) { j.BeginCreate(NoIndex).Altered(podOf(n+20, 1), true) },
		func(n int) { j.ForgetAltered(uidOf(n + 20)) },
		func(int) { j.AlteredPods() },
		func(int) { j.BeginCreate(NoIndex).Unknown(false) },
		func(int) { j.BeginCreate(NoIndex).Refused() },
		func(int) { j.BeginList().End(nil, "") },
		func(int) { j.BeginList().Cancel() },
		func(int) { j.NeedsList() },
		func(int) { j.View(ViewOptions{Now: time.Now(), MaxRows: 1, ActiveRows: 1}) },
		func(int) { j.Census(10) },
		func(int) { j.Hindered() },
		func(int) { j.Strays() },
		func(int) { j.WithTrackingFinalizer() },
		func(int) { j.UnseenPods() },
		func(int) { j.Idle() },
		func(n int) { j.Pod(uidOf(n)) },
		func(n int) { j.PodGone(uidOf(n), Response) },
		func(n int) { j.PodLeft(podOf(1, n), Response) },
		func(int) { j.SetPolicy(Policy{}) },
	}
}

// usesOfJob are those of the Job itself, in the same way.
func usesOfJob(jobs *Jobs, j *Job) []func(n int) {
	return []func(n int){
		func(n int) { jobs.With(sharedKey, func(j *Job) { j.Observe(sharedJob(n), Watch) }) },
		func(int) { jobs.Existing(sharedKey.UID) },
		func(int) { jobs.DropUnused(sharedKey) },
		func(n int) { comeAndGo(jobs, n) },
		func(int) { j.Refusals.Refused(writes.ReleasePod, string(uidOf(1)), time.Now(), "no") },
		func(int) { j.PruneRefusals() },
		func(int) { j.Current() },
		func(int) { j.LastVersion() },
		func(int) { j.Lifecycle() },
		func(int) { j.FirstSeen() },
		func(int) { j.SeenSuspended() },
		func(int) { j.Matches(podOf(1, 1)) },
		func(int) { j.Mark(StaleJob | StalePods) },
		func(int) { j.Has(StaleJob) },
		func(int) { j.MustRefresh() },
		func(int) { j.Clear(StaleJob) },
		func(int) { j.StepFailed(Create, clock.Limits{}) },
		func(int) { j.StepWaitsUntil(Create) },
		func(int) { j.StepMayGoOn(Create) },
		func(int) { j.ReleaseFailed(uidOf(1), clock.Limits{First: 1, Max: 1}) },
		func(int) { j.MayRelease(uidOf(1)) },
		func(int) { j.NextRelease() },
		func(int) { j.RowsRefused(9, 1) },
		func(int) { j.MaxRows(9) },
		func(int) { j.RowsAccepted(1, 9) },
		func(int) { j.RowsRegrowth(1, 9) },
		func(int) { j.StatusConflict() },
		func(int) { j.StatusWritten(time.Second) },
		func(int) { j.PostponeStatus(1) },
		func(int) { j.StatusDue() },
		func(int) { j.Decided(time.Now(), nil, nil) },
		func(int) { j.LastDecision() },
		func(n int) { j.Rejected(int64(n), "") },
		func(int) { j.Rejection() },
		func(int) { j.NextRequest() },
		func(n int) { j.Expect(&sharedJob(n).Status) },
		func(n int) { j.Unanswered(&StatusWrite{Job: sharedJob(n), Status: batchv1.JobStatus{Failed: 1}}) },
		func(n int) { j.Resolve(sharedJob(n)) },
		func(n int) { j.Answered(&StatusWrite{Job: sharedJob(n)}) },
		func(n int) { j.Announce(&StatusWrite{Job: sharedJob(n)}) },
	}
}

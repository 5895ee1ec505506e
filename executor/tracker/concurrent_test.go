package tracker

import (
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/writes"
)

// A worker reconciles a Job while the watches show it and its pods, and views read what is known.
// Nobody waits for ever; the race detector says whether the lock protects all of it.
func TestAJobIsUsedByManyGoroutines(t *testing.T) {
	jobs, key := NewJobs(nil), Key{Namespace: "ns", UID: "job"}
	version := func(n int) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, UID: key.UID, ResourceVersion: string(rune('1' + n)), Generation: int64(n),
		}}
	}
	j := jobs.With(key, func(j *Job) { j.Observe(version(0), Watch) })
	uses := []func(n int){
		func(n int) { jobs.With(key, func(j *Job) { j.Observe(version(n), Watch) }) },
		func(n int) { jobs.With(key, func(j *Job) { j.ObservePod(podOf(1, n+1, tracked), Watch) }) },
		func(int) { jobs.Existing(key.UID); jobs.DropUnused(key) },
		func(n int) { jobs.Selecting(podOf(n, 1)) },
		func(int) { j.Refusals.Refused(writes.ReleasePod, string(uidOf(1)), time.Now(), "no") },
		func(int) { j.PruneRefusals() },
		func(int) { j.SweepPods(1, func(*podcache.Pod) *podcache.Pod { return nil }) },
		func(int) { end := j.BeginCall(); j.PodDeleted(uidOf(1)); end() },
		func(n int) { j.BeginCreate(NoIndex).Created(podOf(n+2, 1)) },
		func(n int) { j.BeginCreate(NoIndex).Altered(podOf(n+20, 1), true); j.ForgetAltered(uidOf(n + 20)) },
		func(int) { j.BeginCreate(NoIndex).Unknown(false); j.BeginList().End(nil, "") },
		func(int) { j.View(ViewOptions{Now: time.Now(), MaxRows: 1, ActiveRows: 1}) },
		func(int) {
			j.Census(10)
			j.Hindered()
			j.Strays()
			j.WithTrackingFinalizer()
			j.UnseenPods()
			j.Idle()
		},
		func(int) { j.Mark(StaleJob | StalePods); j.MustRefresh(); j.Clear(StaleJob) },
		func(int) { j.StepFailed(Create, clock.Limits{}); j.StepWaitsUntil(Create); j.StepMayGoOn(Create) },
		func(int) {
			j.ReleaseFailed(uidOf(1), clock.Limits{First: 1, Max: 1})
			j.MayRelease(uidOf(1))
			j.UntilNextRelease()
		},
		func(int) { j.RowsRefused(9, 1); j.MaxRows(9); j.RowsAccepted(1, 9); j.RowsRegrowth(1, 9) },
		func(int) { j.StatusConflict(); j.StatusWritten(time.Second); j.PostponeStatus(1); j.StatusDue() },
		func(n int) {
			j.Decided(time.Now(), nil, nil)
			j.LastDecision()
			j.Rejected(int64(n), "")
			j.Rejection()
			j.NextRequest()
		},
		func(n int) {
			w := &StatusWrite{Job: version(n), Status: batchv1.JobStatus{Failed: 1}}
			j.Expect(&w.Status)
			j.Unanswered(w)
			j.Resolve(version(n))
			j.Answered(w)
			j.Expect(nil)
		},
		func(int) {
			j.Current()
			j.LastVersion()
			j.Lifecycle()
			j.FirstSeen()
			j.SeenSuspended()
			j.Matches(podOf(1, 1))
		},
		func(n int) { j.PodGone(types.UID(corev1.PodFailed), Response); j.PodLeft(podOf(1, n), Response) },
	}
	var all sync.WaitGroup
	for _, use := range uses {
		all.Go(func() {
			for n := range 8 {
				use(n)
			}
		})
	}
	all.Wait()
	if j.Gone(nil, true); j.Lifecycle() != Gone || j.LastDecision() != nil {
		t.Errorf("in the end the lifecycle is %v, and the last decision %v; want gone and none", j.Lifecycle(), j.LastDecision())
	}
}

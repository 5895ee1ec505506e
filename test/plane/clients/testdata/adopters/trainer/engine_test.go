package controller

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	utiltesting "github.com/kubeflow/trainer/v2/pkg/util/testing"
	"github.com/kubeflow/trainer/v2/pkg/util/trainjob"
)

// The engine answers as Trainer's own function does, and as often the JobSet is gone.
func TestDeadlinesAreThoseOfBefore(t *testing.T) {
	failed, waiting := 0, 0
	for seed := range uint64(2000) {
		before := drawTrainJob(rand.New(rand.NewPCG(seed, 1)))
		now := before.DeepCopy()
		had := trainjob.IsTrainJobFinished(before)
		r, beside := reconcilerOf(before), reconcilerOf(now)
		want := r.reconcileDeadlineBefore(t.Context(), before)
		got, err := beside.reconcileDeadline(t.Context(), now)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		over := trainjob.IsTrainJobFinished(before) && !had
		if trainjob.IsTrainJobFinished(now) != (over || had) || jobSets(t, r) != jobSets(t, beside) || (got.RequeueAfter-want.RequeueAfter).Abs() > 100*time.Millisecond {
			t.Fatalf("seed %d: Trainer: %+v, %+v; the engine: %+v, %+v", seed, want, before.Status, got, now.Status)
		}
		if over {
			failed++
		}
		if want.RequeueAfter > 0 {
			waiting++
		}
	}
	if failed < 300 || waiting < 300 || failed+waiting > 1800 {
		t.Errorf("of 2000 TrainJobs, %d fail and %d wait; want some of each, and some others", failed, waiting)
	}
}

// A deadline of 300 years and more is one that never comes. Trainer as it is multiplies seconds into a number of 64 bits, which is
// then below 0, so that the TrainJob fails at once.
func TestALongDeadlineNeverPasses(t *testing.T) {
	for _, seconds := range []int64{math.MaxInt64/int64(time.Second) + 1, 10_000_000_000, math.MaxInt64} {
		trainJob := drawTrainJob(rand.New(rand.NewPCG(1, 1)))
		trainJob.Spec = trainer.TrainJobSpec{ActiveDeadlineSeconds: seconds}
		trainJob.Status = trainer.TrainJobStatus{}
		result, err := reconcilerOf(trainJob).reconcileDeadline(t.Context(), trainJob)
		if err != nil || result.RequeueAfter != 0 || trainjob.IsTrainJobFinished(trainJob) {
			t.Errorf("%d s: %+v, %+v, %v", seconds, result, trainJob.Status, err)
		}
	}
}

// drawTrainJob draws a TrainJob. No deadline passes within half a second from now.
func drawTrainJob(r *rand.Rand) *trainer.TrainJob {
	half := time.Now().Truncate(time.Millisecond).Add(500 * time.Millisecond)
	ago := func() metav1.Time { return metav1.NewTime(half.Add(-time.Duration(1+r.IntN(20)) * time.Second)) }
	trainJob := utiltesting.MakeTrainJobWrapper("default", "a").ActiveDeadlineSeconds(int64(r.IntN(16))).Suspend(r.IntN(4) == 0).Obj()
	trainJob.CreationTimestamp = ago()
	for _, kind := range []string{trainer.TrainJobSuspended, trainer.TrainJobComplete, trainer.TrainJobFailed} {
		if n := r.IntN(12); n < 2 || kind == trainer.TrainJobSuspended && n < 6 {
			status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}[min(n, 1)]
			trainJob.Status.Conditions = append(trainJob.Status.Conditions, metav1.Condition{Type: kind, Status: status, LastTransitionTime: ago()})
		}
	}
	return trainJob
}

// reconcilerOf sees the JobSet of a TrainJob.
func reconcilerOf(trainJob *trainer.TrainJob) *TrainJobReconciler {
	jobSet := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: trainJob.Name, Namespace: trainJob.Namespace}}
	return &TrainJobReconciler{client: utiltesting.NewClientBuilder().WithObjects(jobSet).Build()}
}

func jobSets(t *testing.T, r *TrainJobReconciler) int {
	t.Helper()
	var all jobsetv1alpha2.JobSetList
	if err := r.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return len(all.Items)
}

func BenchmarkDeadline(b *testing.B) {
	trainJob := utiltesting.MakeTrainJobWrapper("default", "a").ActiveDeadlineSeconds(60).Obj()
	trainJob.CreationTimestamp = metav1.Now()
	measure(b, func() error { _, err := deadlinesOf(b.Context(), trainJob, time.Now()); return err })
}

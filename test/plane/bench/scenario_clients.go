package bench

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// updateSpacing is the time from one creation to the next: long enough for every
	// contender to be idle again.
	updateSpacing = 60 * time.Millisecond
	// updateDelay is how long the creator of every second Job waits before it updates the
	// Job: about as long as a queue controller takes that sees the Job by a watch.
	updateDelay = 20 * time.Millisecond
	// mostConflicts is the share of updates that may conflict with the first status of
	// a suspended Job. None does, unless the machine stands still for 100 ms.
	mostConflicts = 0.25
)

// updated (S9): a client creates n one-pod Jobs and updates them, every second one at
// once and the others a little later, with the version that the creation returned. If
// a status was written by then, the update fails with a conflict.
func updated(n int, suspended bool) *Scenario {
	s := &Scenario{
		Name: "S9-running", Title: fmt.Sprintf("%d one-pod Jobs, half of which are updated at once, half %d ms after their creation", n, updateDelay.Milliseconds()),
		Latency: ofJobs, Pods: n, script: script{phase: corev1.PodSucceeded, podTime: updateSpacing}, ends: batchv1.JobComplete, statusesOnly: true,
	}
	spec := oneShot()
	if suspended {
		s.Name, s.Title = "S9-suspended", s.Title+"; they are created suspended and resumed in the end"
		spec.Suspend = new(true)
	}
	s.play = func(ctx context.Context, r *run) error {
		conflicts, err := r.createAndUpdate(ctx, n, spec)
		if err != nil {
			return err
		}
		half := float64(n) / 2
		r.figures[ConflictsAtOnce], r.figures[ConflictsLater] = 100*float64(conflicts[0])/half, 100*float64(conflicts[1])/half
		if all := conflicts[0] + conflicts[1]; suspended && r.contender.ours && float64(all) > mostConflicts*float64(n) {
			return fmt.Errorf("%d of %d updates of Jobs that were just created suspended are conflicts", all, n)
		}
		if suspended {
			if err := r.resumeAll(ctx, n); err != nil {
				return err
			}
		}
		if err := r.awaitEnd(ctx, n, n); err != nil {
			return err
		}
		end, _ := r.latencies(anyName)
		r.figures.latency(end)
		return nil
	}
	return s
}

// createAndUpdate counts the conflicts of the Jobs that are updated at once, and of
// those that are updated later.
func (r *run) createAndUpdate(ctx context.Context, n int, spec batchv1.JobSpec) (conflicts [2]int, err error) {
	beat := time.NewTicker(updateSpacing)
	defer beat.Stop()
	for i := range n {
		select {
		case <-ctx.Done():
			return conflicts, context.Cause(ctx)
		case <-beat.C:
		}
		job, err := r.created(ctx, oneName(i), "", spec)
		if err != nil {
			return conflicts, err
		}
		if i%2 == 1 {
			time.Sleep(updateDelay)
		}
		refused, err := r.update(ctx, job)
		if err != nil {
			return conflicts, err
		}
		if refused {
			conflicts[i%2]++
		}
	}
	return conflicts, nil
}

// update changes an annotation of the Job in the given version. It reports whether
// that version is no longer the newest.
func (r *run) update(ctx context.Context, job *batchv1.Job) (conflict bool, err error) {
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "example.com/updated", "yes")
	_, err = r.client.BatchV1().Jobs(job.Namespace).Update(ctx, job, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return true, nil
	}
	return false, err
}

func (r *run) resumeAll(ctx context.Context, n int) error {
	for i := range n {
		_, err := r.client.BatchV1().Jobs(r.namespace).Patch(ctx, oneName(i), types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

func oneName(i int) string { return fmt.Sprintf("one-%d", i) }

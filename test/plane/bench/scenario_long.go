package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// beside (S6): one-pod Jobs, first alone, then while a Job of n pods runs. The floor
// has only two writes in flight for the large Job, so that it disturbs the small
// ones least.
func beside(n, parallelism, singles int, perSecond float64) *Scenario {
	return &Scenario{
		Name: "S6", Title: fmt.Sprintf("%d one-pod Jobs alone, and %d while a Job of %d pods runs", singles, singles, n), Latency: ofJobs + ", of the one-pod Jobs beside the large one",
		Pods: n + 2*singles, script: script{podTime: time.Second, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete,
		FloorWrites: 2,
		play: func(ctx context.Context, r *run) error {
			if err := r.createAtRate(ctx, "alone", singles, perSecond); err != nil {
				return err
			}
			if err := r.awaitEnd(ctx, singles, singles); err != nil {
				return err
			}
			if err := r.create(ctx, "large", jobSpec(batchv1.IndexedCompletion, n, parallelism)); err != nil {
				return err
			}
			if err := r.await(ctx, "until the large Job is under way", func(t total, _ int) bool { return t.seen-singles >= n/20 }); err != nil {
				return err
			}
			if err := r.createAtRate(ctx, "beside", singles, perSecond); err != nil {
				return err
			}
			if err := r.awaitEnd(ctx, 2*singles+1, n+2*singles); err != nil {
				return err
			}
			r.figures.fairness(r)
			return nil
		},
	}
}

// fairness compares the one-pod Jobs beside the large one with those alone. The
// floor shows how much longer two calls take that wait for nothing else: the
// kubelet's, which ends the pod, and the release.
func (f Figures) fairness(r *run) {
	named := func(prefix string) []time.Duration {
		end, _ := r.latencies(func(name string) bool { return strings.HasPrefix(name, prefix) })
		return end
	}
	alone, busy := named("alone-"), named("beside-")
	f.latency(busy)
	f[IdleP50] = milliseconds(spread(alone, 0.5))
	f[LatencyOverIdle] = float64(spread(busy, 0.5)) / float64(spread(alone, 0.5))
}

// many (S7): one Job of n pods, parallelism of them at a time, of which only keep stay when they have finished.
// With keep 0 all stay.
func many(n, parallelism, keep int) *Scenario {
	s := &Scenario{
		Name: "S7-all", Title: fmt.Sprintf("a Job of %d pods, %d at a time", n, parallelism), Latency: ofPods,
		Pods: n, script: script{podTime: time.Second, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete, keep: keep,
	}
	policy := ""
	if keep > 0 {
		s.Name, s.Title = fmt.Sprintf("S7-keep%d", keep), s.Title+fmt.Sprintf(", of which %d stay when they have finished", keep)
		policy = fmt.Sprintf("{job: {keepFinishedPods: {succeeded: %d}}}", keep)
	}
	s.play = func(ctx context.Context, r *run) error {
		if _, err := r.created(ctx, "job", policy, jobSpec(batchv1.NonIndexedCompletion, n, parallelism)); err != nil {
			return err
		}
		if err := r.awaitEnd(ctx, 1, n); err != nil {
			return err
		}
		r.figures.latency(r.kubelet.releases(r.namespace))
		r.figures.jobEnd(r)
		t, _, err := r.kubelet.totals(r.namespace)
		r.figures[MostPods] = float64(t.most)
		return err
	}
	return s
}

// steady (S8): n pods of a Job run. One after the other ends and is replaced, perSecond of them
// each second, events of them in all. Then all end.
func steady(n, events int, perSecond float64) *Scenario {
	return &Scenario{
		Name: fmt.Sprintf("S8-%d", n), Title: fmt.Sprintf("%d pods run, %g a second ends and is replaced, %d times", n, perSecond, events), Latency: ofPods + ", in the steady state",
		Pods: n + events, script: script{hold: true, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete,
		play: func(ctx context.Context, r *run) error {
			if err := r.create(ctx, "job", jobSpec(batchv1.IndexedCompletion, n+events, n)); err != nil {
				return err
			}
			if err := r.await(ctx, "until all run", func(t total, _ int) bool { return t.running == n }); err != nil {
				return err
			}
			if err := r.steadyState(ctx, n, events, perSecond); err != nil {
				return err
			}
			r.kubelet.endHeld(ctx, r.namespace, -1)
			return r.awaitEnd(ctx, 1, n+events)
		},
	}
}

// steadyState ends pods one by one and measures the cost.
func (r *run) steadyState(ctx context.Context, n, events int, perSecond float64) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	before, err := r.read()
	if err != nil {
		return err
	}
	beat := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer beat.Stop()
	for range events {
		r.kubelet.endHeld(ctx, r.namespace, 1)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
		}
	}
	err = r.await(ctx, "until the last is replaced", func(t total, _ int) bool {
		return t.running == n && t.ended() == events && t.finalizers == n
	})
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	after, err := r.read()
	if err != nil {
		return err
	}
	r.figures.latency(r.kubelet.releases(r.namespace))
	r.figures.perEvent(before, after, events)
	return nil
}

package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A Scenario is work that every contender gets.
type Scenario struct {
	// Name is short and unique: S2-indexed-p1000.
	Name string
	// Title says what happens.
	Title string
	// Latency says from which event to which the latency of this scenario is measured.
	Latency string
	// QPS limits the contender's requests per second; 0: no limit.
	QPS int
	// FloorWrites is how many writes the floor has in flight for Jobs of many pods;
	// 0: floorWriters.
	FloorWrites int
	// Pods is how many pods there are in all.
	Pods int
	// statusesOnly leaves the floor out: the scenario is about statuses.
	statusesOnly bool
	// keep is how many finished pods stay while the Job runs (option keepFinishedPods), under this project's
	// controllers alone; 0: all stay, under every contender.
	keep int

	script
	play func(ctx context.Context, r *run) error
	// ends is the condition that every Job ends with.
	ends batchv1.JobConditionType
}

// A Size says how much work there is.
type Size string

// The sizes: Tiny shows that all of it works, Small takes minutes, the published figures are
// of Full, and Huge has a hundred thousand concurrent pods.
const (
	Tiny  Size = "tiny"
	Small Size = "small"
	Full  Size = "full"
	Huge  Size = "huge"
)

// Scenarios returns the scenarios of a size.
func Scenarios(size Size) ([]*Scenario, error) {
	switch size {
	case Tiny:
		return []*Scenario{
			oneByOne(4, 20, 200*time.Millisecond),
			oneJob(batchv1.IndexedCompletion, 40, 10, 0, 100*time.Millisecond),
			failing(30, true),
			atOnce(100),
			steady(20, 3, 10),
			updated(40, true),
			many(60, 10, 5),
		}, nil
	case Small:
		return []*Scenario{
			oneByOne(40, 5, 2*time.Second),
			oneJob(batchv1.IndexedCompletion, 1000, 100, 0, time.Second),
			oneJob(batchv1.IndexedCompletion, 1000, 1000, 0, time.Second),
			oneJob(batchv1.NonIndexedCompletion, 1000, 100, 0, time.Second),
			oneJob(batchv1.NonIndexedCompletion, 1000, 1000, 0, time.Second),
			oneJob(batchv1.IndexedCompletion, 500, 500, 100, time.Second),
			failing(1000, false),
			failing(1000, true),
			atOnce(300),
			beside(3000, 300, 20, 2),
			steady(100, 10, 1),
			steady(1000, 10, 1),
			updated(200, false),
			updated(200, true),
		}, nil
	case Full:
		return []*Scenario{
			oneByOne(200, 5, 2*time.Second),
			oneJob(batchv1.IndexedCompletion, 10_000, 1000, 0, time.Second),
			oneJob(batchv1.IndexedCompletion, 10_000, 10_000, 0, time.Second),
			oneJob(batchv1.NonIndexedCompletion, 10_000, 1000, 0, time.Second),
			oneJob(batchv1.NonIndexedCompletion, 10_000, 10_000, 0, time.Second),
			oneJob(batchv1.IndexedCompletion, 10_000, 1000, 100, time.Second),
			failing(10_000, false),
			failing(10_000, true),
			atOnce(2000),
			beside(50_000, 5000, 100, 2),
			steady(1000, 60, 1),
			steady(10_000, 60, 1),
			updated(400, false),
			updated(400, true),
		}, nil
	case Huge:
		return []*Scenario{steady(100_000, 60, 1), many(100_000, 100, 0), many(100_000, 100, 10)}, nil
	}
	return nil, fmt.Errorf("no size is called %q; there are %q, %q, %q and %q", size, Tiny, Small, Full, Huge)
}

const ofJobs, ofPods = "last pod ended → Complete or Failed seen", "pod ended → finalizer seen released"

// anyName takes every Job.
func anyName(string) bool { return true }

// oneByOne (S1): one-pod Jobs at a rate that leaves every contender idle most of
// the time.
func oneByOne(n int, perSecond float64, podTime time.Duration) *Scenario {
	return &Scenario{
		Name: "S1", Title: fmt.Sprintf("%d one-pod Jobs, %g a second", n, perSecond), Latency: ofJobs,
		Pods: n, script: script{podTime: podTime, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete,
		play: func(ctx context.Context, r *run) error {
			if err := r.createAtRate(ctx, "one", n, perSecond); err != nil {
				return err
			}
			if err := r.awaitEnd(ctx, n, n); err != nil {
				return err
			}
			end, first := r.latencies(anyName)
			r.figures.latency(end)
			r.figures[FirstPodP50], r.figures[FirstPodP99] = milliseconds(spread(first, 0.5)), milliseconds(spread(first, 0.99))
			return nil
		},
	}
}

// oneJob (S2, and S3 under a limit): one Job of n pods, parallelism of them at a time.
func oneJob(mode batchv1.CompletionMode, n, parallelism, qps int, podTime time.Duration) *Scenario {
	s := &Scenario{
		Name:  fmt.Sprintf("S2-%s-p%d", strings.ToLower(string(mode)), parallelism),
		Title: fmt.Sprintf("%s Job of %d pods, %d at a time", mode, n, parallelism), Latency: ofPods,
		Pods: n, QPS: qps, script: script{podTime: podTime, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete,
		play: func(ctx context.Context, r *run) error {
			if err := r.create(ctx, "job", jobSpec(mode, n, parallelism)); err != nil {
				return err
			}
			if err := r.awaitEnd(ctx, 1, n); err != nil {
				return err
			}
			r.figures.latency(r.kubelet.releases(r.namespace))
			r.figures.jobEnd(r)
			if qps > 0 {
				// The burst at the start counts as if it were spread over the run.
				ceiling := r.makespan().Seconds()*float64(qps) + limitedBurst
				r.figures[CeilingShare] = 100 * 2 * float64(n) / ceiling
			}
			return nil
		},
	}
	if qps > 0 {
		s.Name = fmt.Sprintf("S3-%s-p%d", strings.ToLower(string(mode)), parallelism)
		s.Title += fmt.Sprintf(", at most %d requests a second", qps)
	}
	return s
}

// failing (S4): n pods that all run at once and then all fail. With perIndex each index
// fails by itself; otherwise the last pod exceeds the Job's limit.
// Both controllers delay new pods after a failure, so no pod may fail before all
// exist.
func failing(n int, perIndex bool) *Scenario {
	s := &Scenario{
		Name: "S4-job", Title: fmt.Sprintf("%d pods run, and then all fail, which is one too many for the Job", n), Latency: ofPods,
		Pods: n, script: script{hold: true, phase: corev1.PodFailed}, ends: batchv1.JobFailed,
	}
	spec := jobSpec(batchv1.NonIndexedCompletion, n, n)
	spec.BackoffLimit = new(int32(n - 1))
	if perIndex {
		s.Name, s.Title = "S4-index", fmt.Sprintf("%d pods run, and then all fail, with backoffLimitPerIndex 0", n)
		spec = jobSpec(batchv1.IndexedCompletion, n, n)
		spec.BackoffLimitPerIndex = new(int32(0))
	}
	s.play = func(ctx context.Context, r *run) error {
		if err := r.create(ctx, "job", spec); err != nil {
			return err
		}
		if err := r.await(ctx, "until all run", func(t total, _ int) bool { return t.running == n }); err != nil {
			return err
		}
		r.kubelet.endHeld(ctx, r.namespace, -1)
		if err := r.awaitEnd(ctx, 1, n); err != nil {
			return err
		}
		r.figures.latency(r.kubelet.releases(r.namespace))
		r.figures.jobEnd(r)
		return nil
	}
	return s
}

// atOnce (S5): n one-pod Jobs as fast as they can be created.
func atOnce(n int) *Scenario {
	return &Scenario{
		Name: "S5", Title: fmt.Sprintf("%d one-pod Jobs at once", n), Latency: ofJobs,
		Pods: n, script: script{podTime: time.Second, phase: corev1.PodSucceeded}, ends: batchv1.JobComplete,
		play: func(ctx context.Context, r *run) error {
			if err := r.createAtRate(ctx, "one", n, math.Inf(1)); err != nil {
				return err
			}
			if err := r.awaitEnd(ctx, n, n); err != nil {
				return err
			}
			end, _ := r.latencies(anyName)
			r.figures.latency(end)
			return r.awaitEvents(ctx, n)
		},
	}
}

// createAtRate creates n one-pod Jobs, perSecond of them each second.
func (r *run) createAtRate(ctx context.Context, prefix string, n int, perSecond float64) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(float64(i) / perSecond * float64(time.Second)))
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-time.After(time.Until(due)):
		}
		group.Go(func() error { return r.create(ctx, fmt.Sprintf("%s-%d", prefix, i), oneShot()) })
	}
	return group.Wait()
}

func oneShot() batchv1.JobSpec { return jobSpec(batchv1.NonIndexedCompletion, 1, 1) }

func jobSpec(mode batchv1.CompletionMode, completions, parallelism int) batchv1.JobSpec {
	return batchv1.JobSpec{
		CompletionMode: &mode, Completions: new(int32(completions)), Parallelism: new(int32(parallelism)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: containerName, Image: "example.com/played"}},
		}},
	}
}

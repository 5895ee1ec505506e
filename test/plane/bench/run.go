package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

const (
	// patience is the longest time without progress; after it, a contender has failed.
	// No contender waits longer than ten seconds on purpose.
	patience = 2 * time.Minute
	// lookInterval is the time between two checks of the progress. Each takes a
	// lock. It does not affect the figures: times are taken when events arrive.
	lookInterval = 20 * time.Millisecond
	// longestQuiet bounds the wait until a contender sends nothing more.
	longestQuiet = 20 * time.Second
	// containerName is the container of every pod.
	containerName = "main"
	// creators is how many Jobs are created at once.
	creators = 16
)

// A run is one contender in one scenario, in a namespace of its own.
type run struct {
	*plane
	scenario  *Scenario
	contender contender
	processes *processes
	account   string
	namespace string
	figures   Figures
	calls     calls // of the whole scenario
	// quiet is how long a contender sends nothing before it is taken to be done.
	quiet time.Duration
	// profileDir is where CPU profiles go; empty: none are taken.
	profileDir string
	say        func(format string, args ...any)
}

// A reading holds what a contender has used and done so far.
type reading struct {
	at time.Time
	usage
	surroundings
	calls
	metrics
}

func (r *run) read() (reading, error) {
	now := reading{at: time.Now(), metrics: metrics{}}
	var err error
	if now.usage, err = r.processes.usage(); err != nil {
		return now, err
	}
	// This is read before the audit log, because that takes longer the more calls were made.
	if now.surroundings, err = r.plane.surroundings(); err != nil {
		return now, err
	}
	if now.calls, err = r.audit.read(user(r.account)); err != nil {
		return now, err
	}
	for _, url := range r.processes.metrics {
		if err := now.scrape(url); err != nil {
			return now, err
		}
	}
	return now, nil
}

// execute runs the scenario and checks its results.
func (r *run) execute(ctx context.Context) error {
	if err := r.open(ctx, r.namespace, r.scenario.script); err != nil {
		return err
	}
	if err := r.warmUp(ctx); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	before, err := r.read()
	if err != nil {
		return err
	}
	if err := r.profiled(ctx, r.scenario.play); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	after, err := r.read()
	if err != nil {
		return err
	}
	r.calls = after.calls.minus(before.calls)
	r.addCommonFigures(before, after)
	if err := r.verify(ctx); err != nil {
		return fmt.Errorf("wrong result: %w", err)
	}
	return nil
}

// warmUp lets the contender complete one Job that is not measured, so that its
// caches, connections and memory are in use.
func (r *run) warmUp(ctx context.Context) error {
	warm := *r
	warm.namespace += "-warm"
	warm.say = func(string, ...any) {}
	if err := r.open(ctx, warm.namespace, script{phase: corev1.PodSucceeded}); err != nil {
		return err
	}
	if err := warm.create(ctx, "warm", oneShot()); err != nil {
		return err
	}
	if err := warm.awaitEnd(ctx, 1, 1); err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.clear(ctx, warm.namespace)
}

// create creates a Job; its clock starts now.
func (r *run) create(ctx context.Context, name string, spec batchv1.JobSpec) error {
	_, err := r.created(ctx, name, "", spec)
	return err
}

// created creates a Job, with a policy unless that is empty, and returns it as the API server does.
func (r *run) created(ctx context.Context, name, policy string, spec batchv1.JobSpec) (*batchv1.Job, error) {
	r.observer.announce(r.namespace, name)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if policy != "" {
		job.Annotations = map[string]string{wire.Policy: policy}
	}
	return r.client.BatchV1().Jobs(r.namespace).Create(ctx, job, metav1.CreateOptions{})
}

// await waits until done returns true. It fails after patience without a change of
// a pod or a Job.
func (r *run) await(ctx context.Context, what string, done func(total, int) bool) error {
	changed, lastOver := time.Now(), -1
	for {
		t, at, err := r.kubelet.totals(r.namespace)
		over := r.observer.over(r.namespace)
		if over != lastOver {
			changed, lastOver = time.Now(), over
		}
		if at.After(changed) {
			changed = at
		}
		switch {
		case err != nil:
			return fmt.Errorf("simulated kubelet: %w", err)
		case done(t, over):
			return nil
		case time.Since(changed) > patience:
			return fmt.Errorf("%s: nothing has happened for %s: %s", what, patience, t.describe(over))
		}
		if err := r.processes.check(); err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return err
		}
		r.say("%s: %s", what, t.describe(over))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lookInterval):
		}
	}
}

func (t total) describe(over int) string {
	return fmt.Sprintf("pods %d created, %d running, %d ended, %d released; jobs %d ended", t.seen, t.running, t.ended(), t.seen-t.finalizers, over)
}

// awaitEnd waits until the Jobs and their pods have ended and no finalizer is
// left. Jobs do not end under the floor.
func (r *run) awaitEnd(ctx context.Context, jobs, pods int) error {
	return r.await(ctx, "until the end", func(t total, over int) bool {
		return t.ended() >= pods && t.finalizers == 0 && (over >= jobs || !r.contender.writesStatus)
	})
}

// settle waits until the contender sends nothing more, because events come late.
func (r *run) settle(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < longestQuiet; {
		quiet, err := r.audit.quiet(r.quiet)
		if err != nil || quiet {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.quiet / 5):
		}
	}
	return nil
}

// spread returns the quantile q of sorted durations.
func spread(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// latencies returns two sorted lists with a value for each Job: the time from the end
// of its last pod until its end was seen, and the time from its creation until its
// first pod was seen.
func (r *run) latencies(names func(string) bool) (end, first []time.Duration) {
	for _, job := range r.observer.all(r.namespace) {
		if job.Job == nil || !names(job.Name) {
			continue
		}
		l := r.kubelet.counts(r.namespace, job.UID)
		first = append(first, l.firstSeen.Sub(job.created))
		end = append(end, r.over(job, l).Sub(l.lastEnd))
	}
	slices.Sort(end)
	slices.Sort(first)
	return end, first
}

// over is when Complete or Failed was seen. Under the floor no Job ends; there it is
// when the removal of the last finalizer was seen.
func (r *run) over(job seenJob, l podCounts) time.Time {
	if r.contender.writesStatus {
		return job.over
	}
	return l.lastRelease
}

// makespan is the time from the creation of the first Job until the end of the last
// one was seen.
func (r *run) makespan() time.Duration {
	var begin, end time.Time
	for _, job := range r.observer.all(r.namespace) {
		if job.Job == nil {
			continue // verify reports it.
		}
		if begin.IsZero() || job.created.Before(begin) {
			begin = job.created
		}
		if over := r.over(job, r.kubelet.counts(r.namespace, job.UID)); over.After(end) {
			end = over
		}
	}
	return end.Sub(begin)
}

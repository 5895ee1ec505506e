package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// patience is how long nothing may happen before a contender has failed. The
	// longest wait that any contender imposes on itself is ten seconds.
	patience = 2 * time.Minute
	// lookInterval is how often the harness looks how far it is. It costs a lock;
	// times are taken when events arrive, not when it looks.
	lookInterval = 20 * time.Millisecond
	// longestQuiet bounds the wait for that.
	longestQuiet = 20 * time.Second
	// containerName is the container of every pod.
	containerName = "main"
	// creators is how many Jobs are created at once.
	creators = 16
)

// A heat is one contender in one scenario, in a namespace of its own.
type heat struct {
	*plane
	scenario  *Scenario
	contender contender
	crew      *crew
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

// A reading is what a contender has used and done up to a moment.
type reading struct {
	at time.Time
	usage
	surroundings
	calls
	metrics
}

func (h *heat) read() (reading, error) {
	r := reading{at: time.Now(), metrics: metrics{}}
	var err error
	if r.usage, err = h.crew.usage(); err != nil {
		return r, err
	}
	// Before the audit log is read, which takes longer the more calls were made.
	if r.surroundings, err = h.plane.surroundings(); err != nil {
		return r, err
	}
	if r.calls, err = h.audit.read(user(h.account)); err != nil {
		return r, err
	}
	for _, url := range h.crew.metrics {
		if err := r.scrape(url); err != nil {
			return r, err
		}
	}
	return r, nil
}

// run plays the scenario and checks what came out.
func (h *heat) run(ctx context.Context) error {
	if err := h.open(ctx, h.namespace, h.scenario.script); err != nil {
		return err
	}
	if err := h.warmUp(ctx); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	before, err := h.read()
	if err != nil {
		return err
	}
	if err := h.profiled(ctx, h.scenario.play); err != nil {
		return err
	}
	if err := h.settle(ctx); err != nil {
		return err
	}
	after, err := h.read()
	if err != nil {
		return err
	}
	h.calls = after.calls.minus(before.calls)
	h.takeAccount(before, after)
	if err := h.verify(ctx); err != nil {
		return fmt.Errorf("wrong result: %w", err)
	}
	return nil
}

// warmUp lets the contender complete one Job that does not count, so that its
// caches, connections and memory are those of a controller at work.
func (h *heat) warmUp(ctx context.Context) error {
	warm := *h
	warm.namespace += "-warm"
	warm.say = func(string, ...any) {}
	if err := h.open(ctx, warm.namespace, script{phase: corev1.PodSucceeded}); err != nil {
		return err
	}
	if err := warm.create(ctx, "warm", oneShot()); err != nil {
		return err
	}
	if err := warm.awaitEnd(ctx, 1, 1); err != nil {
		return err
	}
	if err := h.settle(ctx); err != nil {
		return err
	}
	return h.clear(ctx, warm.namespace)
}

// create creates a Job; its clock starts now.
func (h *heat) create(ctx context.Context, name string, spec batchv1.JobSpec) error {
	_, err := h.created(ctx, name, spec)
	return err
}

// created creates a Job and returns it as the API server does.
func (h *heat) created(ctx context.Context, name string, spec batchv1.JobSpec) (*batchv1.Job, error) {
	h.observer.announce(h.namespace, name)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return h.client.BatchV1().Jobs(h.namespace).Create(ctx, job, metav1.CreateOptions{})
}

// await looks until done says yes. It gives up when no pod and no Job changed
// for as long as patience lasts.
func (h *heat) await(ctx context.Context, what string, done func(total, int) bool) error {
	changed, lastOver := time.Now(), -1
	for {
		t, at, err := h.kubelet.totals(h.namespace)
		over := h.observer.over(h.namespace)
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
		if err := h.crew.check(); err != nil {
			return err
		}
		if err := h.Err(); err != nil {
			return err
		}
		h.say("%s: %s", what, t.describe(over))
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
func (h *heat) awaitEnd(ctx context.Context, jobs, pods int) error {
	return h.await(ctx, "until the end", func(t total, over int) bool {
		return t.ended() >= pods && t.finalizers == 0 && (over >= jobs || !h.contender.writesStatus)
	})
}

// settle waits until the contender sends nothing any more: events come late.
func (h *heat) settle(ctx context.Context) error {
	for begin := time.Now(); time.Since(begin) < longestQuiet; {
		quiet, err := h.audit.quiet(h.quiet)
		if err != nil || quiet {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(h.quiet / 5):
		}
	}
	return nil
}

// spread are quantiles of durations that are sorted.
func spread(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// latencies are, Job by Job, the times from the end of the last pod to the sight
// of the Job's end, and from the creation of the Job to the sight of its first
// pod, sorted.
func (h *heat) latencies(names func(string) bool) (end, first []time.Duration) {
	for _, job := range h.observer.all(h.namespace) {
		if job.Job == nil || !names(job.Name) {
			continue
		}
		l := h.kubelet.ledger(h.namespace, job.UID)
		first = append(first, l.firstSeen.Sub(job.created))
		end = append(end, h.over(job, l).Sub(l.lastEnd))
	}
	slices.Sort(end)
	slices.Sort(first)
	return end, first
}

// over is when Complete or Failed was seen. Under the floor, where no Job ends,
// it is when the last finalizer was seen to go.
func (h *heat) over(job seenJob, l ledger) time.Time {
	if h.contender.writesStatus {
		return job.over
	}
	return l.lastRelease
}

// makespan is the time from the creation of the first Job to the sight of the
// end of the last one.
func (h *heat) makespan() time.Duration {
	var begin, end time.Time
	for _, job := range h.observer.all(h.namespace) {
		if job.Job == nil {
			continue // Verifying will complain.
		}
		if begin.IsZero() || job.created.Before(begin) {
			begin = job.created
		}
		if over := h.over(job, h.kubelet.ledger(h.namespace, job.UID)); over.After(end) {
			end = over
		}
	}
	return end.Sub(begin)
}

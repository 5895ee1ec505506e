package cron

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	pokeAnnotation = "test/poke"
	cronName       = "cron"
	// settle is how long nothing may happen for both sides to be at rest, patience how
	// long they may take to be alike before they are taken to have parted, and
	// longPatience before that is a failure: after errors of its API server the built-in
	// controller waits for twice as long each time, seen for 10 s.
	settle       = 400 * time.Millisecond
	patience     = 8 * time.Second
	longPatience = 45 * time.Second
)

// A world is both sides and the time.
type world struct {
	*rand.Rand
	seed          uint64
	builtin, ours *side
	clock         *virtualClock
	ttlClock      *clocktesting.FakeClock
	now           time.Time
	fates         []*fate
	pokes         int
}

// A fate is one CronJob, or one Job with a time to live, on both sides.
type fate struct {
	*rand.Rand
	namespace string
	spec      *batchv1.CronJobSpec // nil for a Job with a time to live
	ttl       *int32
	// irregular: it has, or had, a schedule whose gaps differ; every: one that counts
	// from the last run.
	irregular, every bool
	log              []string
	problem          string
	known            map[string]bool
	taken            bool
	// parted: the sides differ deliberately in what runs there are; what comes then
	// is not comparable.
	parted bool
	// crowded: the controllers' client has begun to drop events.
	crowded bool
}

func (f *fate) String() string {
	return fmt.Sprintf("%s\n  %s", f.namespace, strings.Join(f.log, "\n  "))
}

func (f *fate) chance(percent int) bool { return f.IntN(100) < percent }

func pick[T any](f *fate, from ...T) T { return from[f.IntN(len(from))] }

func newWorld(seed uint64, crons, ttls int, builtin, ours *side, clock *virtualClock, ttlClock *clocktesting.FakeClock) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 0x63726f6e)), seed: seed,
		builtin: builtin, ours: ours, clock: clock, ttlClock: ttlClock,
	}
	for i := range crons + ttls {
		f := &fate{
			Rand: rand.New(rand.NewPCG(seed, uint64(i))), namespace: fmt.Sprintf("w%d-%d", seed, i), known: map[string]bool{},
		}
		if i < crons {
			f.spec = f.newSpec()
		}
		w.fates = append(w.fates, f)
	}
	return w
}

func (w *world) sides() []*side { return []*side{w.builtin, w.ours} }

// set tells both sides the time.
func (w *world) set(t time.Time) {
	w.now = t
	w.clock.Set(t)
	w.ttlClock.SetTime(t)
}

// run lives through the world.
func (w *world) run(ctx context.Context, jumps int) {
	minute := awaitStartOfMinute(ctx)
	w.set(time.Now().Truncate(time.Second))
	w.each(func(f *fate) error { return w.begin(ctx, f) })
	w.rest(ctx)
	if now, last := time.Now().Truncate(time.Second), minute.Add(59*time.Second); now.Before(last) {
		w.set(now)
	} else {
		w.set(last)
	}
	w.leap(ctx, w.firstDay())
	for _, jump := range w.jumps(jumps) {
		// Nothing is due while users and Jobs act: time stands where both sides have
		// done all that there was to do.
		w.each(func(f *fate) error { return w.act(ctx, f) })
		w.rest(ctx)
		w.compare()
		w.leap(ctx, w.now.Add(jump))
	}
	w.each(func(f *fate) error { return w.clear(ctx, f) })
}

// leap takes both sides to a time and compares what they make of it.
func (w *world) leap(ctx context.Context, next time.Time) {
	w.each(func(f *fate) error {
		f.log = append(f.log, fmt.Sprintf("%s (%s later)", next.UTC().Format(time.RFC3339), next.Sub(w.now)))
		return w.before(ctx, f, next)
	})
	w.rest(ctx)
	w.set(next)
	w.each(func(f *fate) error { return w.poke(ctx, f) })
	w.rest(ctx)
	w.compare()
}

// firstDay is the day on which a world's time begins, whatever day and hour it is
// when the test runs: one of 2028, or of the next year to come that has the same
// calendar (every 28th, up to 2099).
func (w *world) firstDay() time.Time {
	day := time.Date(2028, time.January, 1+w.IntN(366), w.IntN(24), w.IntN(60), 25, 0, time.UTC)
	for !day.After(w.now) {
		day = day.AddDate(28, 0, 0)
	}
	return day
}

// awaitStartOfMinute returns the current minute, of which at least half a minute is
// left. The API server stamps creations with its own time; if a minute ended
// between them and the first jump, runs would be due that nobody has told either
// side to look for, and which side starts them would be chance.
func awaitStartOfMinute(ctx context.Context) time.Time {
	now := time.Now()
	if minute := now.Truncate(time.Minute); now.Sub(minute) <= 30*time.Second {
		return minute
	}
	next := now.Truncate(time.Minute).Add(time.Minute)
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(next)):
	}
	return next
}

// jumps are the steps of time: most short, some that go over days and clock
// changes. After none of them is it exactly as late as a starting deadline allows:
// there, ours counts whole seconds.
func (w *world) jumps(n int) []time.Duration {
	all := []time.Duration{
		20 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 17 * time.Minute, time.Hour,
		3 * time.Hour, 25 * time.Hour, 49 * time.Hour, 8 * 24 * time.Hour, 100 * 24 * time.Hour,
	}
	var out []time.Duration
	for range n {
		out = append(out, all[w.IntN(len(all))])
	}
	return out
}

// each does something for all fates that have not failed yet, many at a time.
func (w *world) each(do func(*fate) error) {
	slots := make(chan struct{}, 24)
	var all sync.WaitGroup
	for _, f := range w.fates {
		if f.problem != "" || f.parted {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := do(f); err != nil {
				f.problem = err.Error()
			}
		})
	}
	all.Wait()
}

// both does something on both sides, which must take it alike.
func (w *world) both(do func(s *side) error) error {
	var errs []error
	for _, s := range w.sides() {
		errs = append(errs, do(s))
	}
	if apierrors.ReasonForError(errs[0]) != apierrors.ReasonForError(errs[1]) {
		return fmt.Errorf("taken differently: built-in %v, ours %v", errs[0], errs[1])
	}
	if apierrors.IsInvalid(errs[0]) || apierrors.IsNotFound(errs[0]) {
		return nil // A step that cannot be.
	}
	return errs[0]
}

// begin makes the object in the same second on both sides: what is due counts
// from its creation.
func (w *world) begin(ctx context.Context, f *fate) error {
	err := w.both(func(s *side) error {
		_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if f.spec == nil {
		return w.beginJob(ctx, f)
	}
	for {
		var times []time.Time
		for _, s := range w.sides() {
			cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: cronName}, Spec: *f.spec}
			made, err := s.client.BatchV1().CronJobs(f.namespace).Create(ctx, cron, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			times = append(times, made.CreationTimestamp.Time)
		}
		if times[0].Equal(times[1]) {
			f.log = append(f.log, fmt.Sprintf("created %s: %s", times[0].UTC().Format(time.RFC3339), describe(f.spec)))
			return nil
		}
		for _, s := range w.sides() {
			if err := s.client.BatchV1().CronJobs(f.namespace).Delete(ctx, cronName, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
}

// poke makes both controllers look again at the time that they are told.
func (w *world) poke(ctx context.Context, f *fate) error {
	w.builtin.mu.Lock()
	w.pokes++
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, pokeAnnotation, w.pokes)
	w.builtin.mu.Unlock()
	return w.both(func(s *side) error {
		if f.spec == nil {
			_, err := s.client.BatchV1().Jobs(f.namespace).Patch(ctx, jobName, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}
		_, err := s.client.BatchV1().CronJobs(f.namespace).Patch(ctx, cronName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// rest waits until nothing happens on either side.
func (w *world) rest(ctx context.Context) {
	begun := time.Now()
	for ctx.Err() == nil {
		quiet := min(time.Since(begun), w.builtin.quietFor(), w.ours.quietFor())
		if quiet >= settle || time.Since(begun) > patience {
			return
		}
		time.Sleep(settle - quiet)
	}
}

// compare holds the views against each other. One that differs gets some time to
// become alike.
func (w *world) compare() {
	begun := time.Now()
	w.each(func(f *fate) error {
		for {
			builtin, ours := w.builtin.view(f.namespace), w.ours.view(f.namespace)
			if f.crowded = f.crowded || w.builtin.crowded(f.namespace) || w.ours.crowded(f.namespace); f.crowded {
				builtin, ours = withoutEvents(builtin), withoutEvents(ours)
			}
			if slices.Equal(builtin, ours) {
				return nil
			}
			if names, ok := deliberate(builtin, ours); ok {
				for _, name := range names {
					f.known[name] = true
				}
				return nil
			}
			if name := parting(f, builtin, ours); name != "" && time.Since(begun) > patience {
				f.known[name], f.parted = true, true
				return nil
			}
			if time.Since(begun) > longPatience {
				return fmt.Errorf("(-built-in +ours):\n%s", difference(builtin, ours))
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// clear removes what the fate has left.
func (w *world) clear(ctx context.Context, f *fate) error {
	background := metav1.DeletePropagationBackground
	return w.both(func(s *side) error {
		err := s.client.BatchV1().CronJobs(f.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return s.client.BatchV1().Jobs(f.namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	})
}

// runs are the CronJob's Jobs on a side, oldest name first.
func (s *side) runsOf(namespace string, which func(*batchv1.Job) bool) []*batchv1.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*batchv1.Job
	for _, job := range s.runs[namespace] {
		if which(job) {
			out = append(out, job)
		}
	}
	slices.SortFunc(out, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return out
}

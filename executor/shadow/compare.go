package shadow

import (
	"context"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"jobpolicy.dev/executor/internal/controller"
)

// DefaultRest is the default of Config.Rest.
const DefaultRest = 10 * time.Second

// compareAgain is when the engine is asked again about an object with differences, if nothing
// happens to it.
const compareAgain = time.Minute

// An Object is what the engine is asked about.
type Object struct {
	// Type is one of TypeJob, TypeCronJob and TypeFinishedJob, a value of a metric's label.
	Type            string
	Namespace, Name string
	UID             types.UID
}

// Types of objects. A finished Job is one whose time to live the engine is asked about.
const (
	TypeJob         = "job"
	TypeCronJob     = "cronjob"
	TypeFinishedJob = "finished_job"
)

// An Answer is an engine's answer about an object.
type Answer struct {
	// Differences are the steps that the decision would take. Empty: none.
	Differences []Difference
	// Next is how long until the engine wants to be asked again. 0: only after an event.
	Next time.Duration
}

// A Comparer compares the objects of one controller. A controller that is not in shadow mode
// has a nil Comparer.
type Comparer struct {
	report     *Report
	objectType string // of Object.Type
	mu         sync.Mutex
	rests      map[types.UID]*rest
}

// rest is what is remembered of an object that has changed, or that had differences in the
// last answer.
type rest struct {
	moved time.Time // When something happened to the object.
	// found are the kinds of the differences in the last answer. since is when they were
	// first the same.
	found []Kind
	since time.Time
}

// OnlyCompare makes a controller of such objects one that only compares: it manages what the
// built-in controller does, and its recorder sends no events. Call it before the controller has a
// queue.
func (r *Report) OnlyCompare(base *controller.Controller, objectType string) *Comparer {
	base.Recorder = &record.FakeRecorder{}
	base.ManagedBy, base.ReplaceBuiltin = batchv1.JobControllerName, true
	return &Comparer{report: r, objectType: objectType, rests: map[types.UID]*rest{}}
}

// Compare is the reconcile of an object in shadow mode. If the object is at rest, Compare asks
// the engine, and reports differences that a later answer repeats. o needs no Type.
func (c *Comparer) Compare(ctx context.Context, o Object, ask func(context.Context) (Answer, error)) (controller.Result, error) {
	o.Type = c.objectType
	if wait := c.untilRest(ctx, o.UID); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	answer, err := ask(ctx)
	if rejected := OfRejection(err); rejected != nil {
		answer, err = Answer{Differences: rejected}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: c.answered(ctx, o, answer)}, nil
}

// answered reports an answer if it is sure, and returns when to ask again. It holds the lock for
// as long as that takes: Gone must come before or after it.
func (c *Comparer) answered(ctx context.Context, o Object, answer Answer) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait, exists := c.untilSure(o.UID, answer)
	if !exists || wait > 0 {
		return max(wait, 0)
	}
	c.report.asked(ctx, o, answer.Differences)
	if len(answer.Differences) > 0 {
		return compareAgain
	}
	return answer.Next
}

// Gone forgets an object that exists no longer, or that nobody has to decide on any more.
func (c *Comparer) Gone(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	delete(c.rests, uid)
	c.mu.Unlock()
	c.report.gone(subject{c.objectType, uid})
}

// untilRest is how long until the object is at rest, if nothing happens; 0 or less: it is
// at rest.
func (c *Comparer) untilRest(ctx context.Context, uid types.UID) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rests[uid]
	event := !slices.Contains([]controller.Cause{controller.CauseTimer, controller.CauseRetry, controller.CauseRequeue}, controller.TriggerOf(ctx).Cause)
	if r == nil {
		r = &rest{}
		c.rests[uid] = r
	}
	if event {
		*r = rest{moved: time.Now()}
	}
	return c.report.cfg.Rest - time.Since(r.moved)
}

// untilSure is how much longer the engine must give an answer with the same kinds of differences
// before it is reported; 0 or less: report it now. An answer without differences is reported at
// once. exists is false if Gone was called meanwhile. c.mu must be held.
func (c *Comparer) untilSure(uid types.UID, answer Answer) (wait time.Duration, exists bool) {
	r := c.rests[uid]
	if r == nil {
		return 0, false
	}
	var found []Kind
	for _, d := range answer.Differences {
		found = append(found, d.Kind)
	}
	if len(found) == 0 {
		delete(c.rests, uid)
		return 0, true
	}
	if !slices.Equal(r.found, found) {
		r.found, r.since = found, time.Now()
	}
	return c.report.cfg.Rest - time.Since(r.since), true
}

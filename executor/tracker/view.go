package tracker

import (
	"bytes"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ViewOptions say what a View should contain.
type ViewOptions struct {
	// Uncounted are the UIDs in the status's uncountedTerminatedPods.
	Uncounted *batchv1.UncountedTerminatedPods
	// Now is wall time. No pod in the View ended after it.
	Now time.Time
	// MaxRows is how many unaccounted pods to list at most. There may be more if the
	// status has recorded more, or if failures are limited per index: then as many as a
	// request may have.
	MaxRows int
	// ActiveRows is how many active pods to list at most. 0: none, and View.Active is nil.
	ActiveRows int
}

// View is the part of a request that is about pods.
type View struct {
	// Pods are the counts; never nil.
	Pods *jobpolicyv1.PodSummary
	// Unaccounted are the rows, in order of UID.
	Unaccounted []*jobpolicyv1.UnaccountedPod
	// Unlisted counts the unaccounted pods without a row; nil: there are none.
	Unlisted *jobpolicyv1.UnlistedPods
	// Confirmed are the UIDs of ViewOptions.Uncounted whose finalizer is gone, in ascending order.
	Confirmed [][]byte
	// Active lists active pods; nil unless they were asked for.
	Active *jobpolicyv1.ActivePods
	// InFlight: nil if no creation is in flight.
	InFlight *jobpolicyv1.InFlight
	// Retry: nil if no pod has succeeded or failed.
	Retry *jobpolicyv1.RetryFacts
}

// View returns the current facts. The package comment says what it costs. The error is a
// wire.ErrUID.
func (t *Tracker) View(o ViewOptions) (View, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	uncounted := o.uncounted()
	v := View{
		Pods:      t.pods.totals.summary(),
		InFlight:  t.calls.inFlight(),
		Retry:     t.pods.retry.message(o.Now),
		Confirmed: t.pods.confirmed(uncounted),
	}
	var err error
	if v.Unaccounted, v.Unlisted, err = t.pods.rows(uncounted, o.MaxRows, o.Now); err != nil {
		return View{}, err
	}
	if o.ActiveRows > 0 {
		if v.Active, err = t.pods.activeRows(uncounted, o.ActiveRows); err != nil {
			return View{}, err
		}
	}
	return v, nil
}

func (o ViewOptions) uncounted() map[types.UID]bool {
	set := map[types.UID]bool{}
	if o.Uncounted == nil {
		return set
	}
	for _, uid := range slices.Concat(o.Uncounted.Succeeded, o.Uncounted.Failed) {
		set[uid] = true
	}
	return set
}

// confirmed returns the UIDs of pods that have no finalizer or do not exist. All pods are
// known before the first View, so a pod that is not known does not exist. UIDs that are
// not valid are left out.
func (p *pods) confirmed(uncounted map[types.UID]bool) [][]byte {
	var out [][]byte
	for uid := range uncounted {
		if r, known := p.records[uid]; known && r.pod.HasTrackingFinalizer {
			continue
		}
		if b, err := wire.UIDBytes(uid); err == nil {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// Pod returns what was last seen of a pod.
func (t *Tracker) Pod(uid types.UID) (*podcache.Pod, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.pods.records[uid]
	if !known {
		return nil, false
	}
	return r.pod, true
}

// Strays returns the pods that the Job controls and its selector does not match.
func (t *Tracker) Strays() []*podcache.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*podcache.Pod, 0, len(t.pods.strays))
	for _, r := range t.pods.strays {
		out = append(out, r.pod)
	}
	return out
}

// WithTrackingFinalizer returns the pods that have the tracking finalizer.
func (t *Tracker) WithTrackingFinalizer() []*podcache.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*podcache.Pod
	for _, r := range t.pods.records {
		if r.pod.HasTrackingFinalizer {
			out = append(out, r.pod)
		}
	}
	return out
}

// Idle reports whether no pod is active, terminating or being created, so that the Job may
// be able to finish.
func (t *Tracker) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pods.totals.active == 0 && t.pods.totals.terminating == 0 && len(t.calls.creations) == 0
}

// Len returns the number of pods known.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pods.records)
}

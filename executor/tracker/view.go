package tracker

import (
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
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
	// Options are the Job's; nil if it has none. The first View with next_try_resources costs O(pods);
	// one with keep_finished_pods sorts all pods that have finished, as does the first after a change of the policy.
	Options *jobpolicyv1.JobOptions
	// Node says the state of a node, if Options ask for it; nil: none is known. It is called with the Job's lock, so it must
	// take no lock that is held when a method of the Job is called.
	Node func(name string) jobpolicyv1.NodeState
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
	// Unstarted lists active pods that do not start, as ViewOptions.Options ask.
	Unstarted []*jobpolicyv1.ActivePod
	// HasRun: a pod has run that is active or unaccounted.
	HasRun bool
	// Terminating are the pods that are being deleted and have not ended, if Options ask for them.
	Terminating []*jobpolicyv1.TerminatingPod
	// Finished are those that are accounted for; nil unless Options ask for them.
	Finished *jobpolicyv1.FinishedPods
	// InFlight: nil if no creation is in flight.
	InFlight *jobpolicyv1.InFlight
	// Retry: nil if no pod has succeeded or failed.
	Retry *jobpolicyv1.RetryFacts
}

// Request returns a request about the Job with the View, which was taken at now.
func (v *View) Request(job *batchv1.Job, settings *jobpolicyv1.Settings, now time.Time) (*jobpolicyv1.DecideJobRequest, error) {
	req, err := wire.JobRequest(job)
	if err != nil {
		return nil, err
	}
	req.Now, req.Settings = timestamppb.New(now), settings
	req.Pods, req.ActivePods, req.UnstartedPods = v.Pods, v.Active, v.Unstarted
	req.UnaccountedPods, req.UnlistedPods, req.ConfirmedReleases = v.Unaccounted, v.Unlisted, v.Confirmed
	req.InFlight, req.Retry, req.TerminatingPods = v.InFlight, v.Retry, v.Terminating
	req.FinishedPods = v.Finished
	return req, nil
}

// View returns the current facts. The package comment says what it costs.
func (j *Job) View(o ViewOptions) View {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pods.tellStarts(len(o.Options.GetNeverStarted()) > 0)
	recorded, counter := o.recorded(), j.pods.counter
	if o.Options.GetNextTryResources() != nil {
		counter.KeepTries(j.pods.all())
	}
	if o.Options.GetKeepFinishedPods() != nil {
		counter.KeepFinished(j.pods.all())
	}
	v := View{
		Terminating: counter.TerminatingPods(o.Options, recorded, o.Now, j.readNodes(o.Node)), // Before Retry, as it says.
		Pods:        counter.Totals.Summary(),
		HasRun:      counter.Totals.HasRun(),
		Finished:    counter.FinishedPods(o.Options),
		InFlight:    j.calls.inFlight(),
		Retry:       counter.Retry(o.wall()),
		Confirmed:   recorded.Confirmed(j.pods.tracked),
	}
	v.Unaccounted, v.Unlisted = counter.Rows(recorded, o.MaxRows, o.wall())
	if len(o.Options.GetNeverStarted()) > 0 {
		v.Unstarted = counter.Unstarted(o.Options.GetNeverStarted(), recorded)
	}
	if o.ActiveRows > 0 {
		v.Active = counter.Active(j.pods.all(), recorded, o.ActiveRows, o.Options)
	}
	return v
}

// readNodes returns how the state of a pod's node is read, and remembers from now on which nodes that are.
func (j *Job) readNodes(state func(string) jobpolicyv1.NodeState) func(*podcache.Pod) jobpolicyv1.NodeState {
	j.nodes = nil
	return func(pod *podcache.Pod) jobpolicyv1.NodeState {
		j.nodes = append(j.nodes, pod.Node())
		switch {
		case pod.Node() == "":
			return jobpolicyv1.NodeState_NODE_STATE_GONE // A pod that is being deleted gets none any more.
		case state == nil:
			return jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED
		}
		return state(pod.Node())
	}
}

// HasRead reports whether the last View depends on the state of a node; of any node, if name is empty.
func (j *Job) HasRead(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.nodes, func(node string) bool { return name == "" || node == name })
}

// recorded are the UIDs in the status. Those that no pod can have are left out.
func (o ViewOptions) recorded() podfacts.UIDs {
	set := podfacts.UIDs{}
	if o.Uncounted == nil {
		return set
	}
	for _, uid := range slices.Concat(o.Uncounted.Succeeded, o.Uncounted.Failed) {
		if b, err := wire.UIDBytes(uid); err == nil {
			set[string(b)] = true
		}
	}
	return set
}

// wall converts elapsed time to wall time; nil without ViewOptions.Now.
func (o ViewOptions) wall() podfacts.Wall {
	if o.Now.IsZero() {
		return nil
	}
	return func(seen time.Time) time.Time { return clock.WallOf(seen, o.Now) }
}

// tracked reports whether a pod has the tracking finalizer. All pods are known before the first
// View, so a pod that is not known does not exist.
func (p *pods) tracked(uid string) bool {
	id, err := wire.UIDString([]byte(uid))
	return err == nil && p.hasFinalizer(id)
}

// hasFinalizer reports whether a pod is known and has the tracking finalizer.
func (p *pods) hasFinalizer(uid types.UID) bool {
	r, known := p.records[uid]
	return known && r.Pod.HasTrackingFinalizer
}

// all are the pods as the counter has them.
func (p *pods) all() iter.Seq[*podfacts.Counted[*podcache.Pod]] {
	return func(yield func(*podfacts.Counted[*podcache.Pod]) bool) {
		for _, r := range p.records {
			if !yield(&r.Counted) {
				return
			}
		}
	}
}

// Pod returns what was last seen of a pod.
func (j *Job) Pod(uid types.UID) (*podcache.Pod, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, known := j.pods.records[uid]
	if !known {
		return nil, false
	}
	return r.Pod, true
}

// Strays returns the pods that the Job controls and its selector does not match, ordered by name.
func (j *Job) Strays() []*podcache.Pod {
	j.mu.Lock()
	out := make([]*podcache.Pod, 0, len(j.pods.strays))
	for _, r := range j.pods.strays {
		out = append(out, r.Pod)
	}
	j.mu.Unlock()
	return byName(out)
}

// WithTrackingFinalizer returns the pods that have the tracking finalizer, ordered by name.
func (j *Job) WithTrackingFinalizer() []*podcache.Pod {
	var out []*podcache.Pod
	j.mu.Lock()
	for _, r := range j.pods.records {
		if r.Pod.HasTrackingFinalizer {
			out = append(out, r.Pod)
		}
	}
	j.mu.Unlock()
	return byName(out)
}

// byName orders pods, so that what is done with them, a few at a time, is done in the same order each time.
func byName(pods []*podcache.Pod) []*podcache.Pod {
	slices.SortFunc(pods, func(a, b *podcache.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// Idle reports whether no pod is active, terminating or being created, so that the Job may
// be able to finish.
func (j *Job) Idle() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pods.counter.Totals.Active == 0 && j.pods.counter.Totals.Terminating == 0 && len(j.calls.creations) == 0
}

package snapshot

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// Pod holds what the engine reads about one pod.
type Pod = podfacts.Pod

// maxRows, the default, is a little less than the contract's limit on unaccounted_pods, because
// pods that share an index with a listed one may be added.
const maxRows = 99_000

// maxActiveRows is the contract's limit on active_pods.
const maxActiveRows = 100_000

// Options say which rows a request has.
type Options struct {
	// ActivePods asks for rows of active pods. Set it in answer to
	// REQUIREMENT_ACTIVE_PODS.
	ActivePods bool
	// MaxUnaccounted bounds the rows of unaccounted pods. 0: 99000. Pods whose UID is in
	// the status always have a row. With backoff_limit_per_index, an index has rows for
	// all of its unaccounted pods or for none; that may exceed MaxUnaccounted, but not the
	// contract's 100000. The other pods are only counted, and a later request lists them.
	MaxUnaccounted int
	// Now is the request's now. Needed only with options.termination_deadline_seconds.
	Now time.Time
}

// Request returns a request with spec and status, and with everything about pods.
// pods are all the pods that the Job controls, finished ones included, in any order.
// A pod that is not in the list is known to be gone. A failed pod delays the next one
// only as long as it is in the list, so a caller keeps it there until another pod has
// succeeded, even after its release.
//
// Nothing is checked here: an invalid pod makes the request invalid, and the engine
// names the field.
func Request(spec *jobpolicyv1.JobSpec, status *jobpolicyv1.JobStatus, pods []Pod, o Options) *jobpolicyv1.DecideJobRequest {
	counter := podfacts.New(podfacts.PolicyOf(spec), func(p *Pod) Pod { return *p })
	counted, tracked := make([]*podfacts.Counted[*Pod], 0, len(pods)), map[string]bool{}
	for _, pod := range byEnd(pods) {
		e := &podfacts.Counted[*Pod]{Pod: pod}
		counted = append(counted, e)
		counter.Add(e, true)
		tracked[string(pod.UID)] = tracked[string(pod.UID)] || pod.Tracked // It may be listed twice.
	}
	if spec.GetOptions().GetNextTryResources() != nil {
		counter.KeepTries(slices.Values(counted))
	}
	if spec.GetOptions().GetKeepFinishedPods() != nil {
		counter.KeepFinished(slices.Values(counted))
	}
	recorded := podfacts.Recorded(status)
	req := &jobpolicyv1.DecideJobRequest{
		Spec: spec, Status: status,
		TerminatingPods:   counter.TerminatingPods(spec.GetOptions(), recorded, o.Now, func(p *Pod) jobpolicyv1.NodeState { return p.Node }), // Before Retry, as it says.
		Pods:              counter.Totals.Summary(),
		ConfirmedReleases: recorded.Confirmed(func(uid string) bool { return tracked[uid] }),
		Retry:             counter.Retry(nil), // With what KeepTries keeps.
		FinishedPods:      counter.FinishedPods(spec.GetOptions()),
	}
	if counter.Totals.HasRun() {
		podfacts.TellHasRun(req)
	}
	limit := o.MaxUnaccounted
	if limit <= 0 {
		limit = maxRows
	}
	req.UnaccountedPods, req.UnlistedPods = counter.Rows(recorded, limit, nil)
	if never := spec.GetOptions().GetNeverStarted(); len(never) > 0 {
		req.UnstartedPods = counter.Unstarted(never, recorded)
	}
	if o.ActivePods {
		req.ActivePods = counter.Active(slices.Values(counted), recorded, maxActiveRows, spec.GetOptions())
	}
	return req
}

// byEnd returns the pods, those that ended first first: they have waited longest for a row.
func byEnd(pods []Pod) []*Pod {
	sorted := make([]*Pod, 0, len(pods))
	for i := range pods {
		sorted = append(sorted, &pods[i])
	}
	slices.SortFunc(sorted, func(a, b *Pod) int {
		return cmp.Or(a.EndTime().Compare(b.EndTime()), bytes.Compare(a.UID, b.UID))
	})
	return sorted
}

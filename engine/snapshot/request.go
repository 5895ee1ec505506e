package snapshot

import (
	"bytes"
	"slices"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxUnaccounted is the contract's limit on unaccounted_pods. maxRows, the default, is a
// little less, because pods that share an index with a listed one may be added.
const (
	maxUnaccounted = 100_000
	maxRows        = 99_000
)

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
}

// A counter holds the input from which all parts of a request are made.
type counter struct {
	spec *jobpolicyv1.JobSpec
	pods []*pod
	// recorded holds the UIDs in status.uncounted.
	recorded map[string]bool
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
	c := counter{spec: spec, recorded: map[string]bool{}}
	for i := range pods {
		c.pods = append(c.pods, (*pod)(&pods[i]))
	}
	uncounted := status.GetUncounted()
	for _, uid := range slices.Concat(uncounted.GetSucceeded(), uncounted.GetFailed()) {
		c.recorded[string(uid)] = true
	}
	limit := o.MaxUnaccounted
	if limit <= 0 {
		limit = maxRows
	}
	listed, rest := c.choose(limit)
	req := &jobpolicyv1.DecideJobRequest{
		Spec: spec, Status: status,
		Pods:              c.summary(),
		UnaccountedPods:   c.rows(listed),
		UnlistedPods:      c.unlisted(rest),
		ConfirmedReleases: c.confirmed(),
		Retry:             c.retry(),
	}
	if o.ActivePods {
		req.ActivePods = c.activePods()
	}
	return req
}

func (c *counter) indexed() bool {
	return c.spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

// perIndex reports whether failures are limited per index.
func (c *counter) perIndex() bool { return c.spec != nil && c.spec.BackoffLimitPerIndex != nil }

// replaceFailedOnly reports whether a pod that is being deleted counts as failed only
// after it has ended. A pod failure policy implies this, because it looks at how a
// pod ended.
func (c *counter) replaceFailedOnly() bool {
	return c.spec.GetPodReplacementPolicy() == jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED ||
		c.spec.GetPodFailurePolicy() != nil
}

// index is the pod's completion index; nil if it has none or the Job is not Indexed.
func (c *counter) index(p *pod) *int32 {
	if !c.indexed() {
		return nil
	}
	return p.validIndex()
}

func (c *counter) summary() *jobpolicyv1.PodSummary {
	m := &jobpolicyv1.PodSummary{}
	for _, p := range c.pods {
		switch {
		case p.active():
			m.Active++
			m.Ready += one(p.Ready)
			m.TrackedActive += one(p.Tracked)
		case p.terminating():
			m.Terminating++
		}
		if p.phase() == jobpolicyv1.PodPhase_POD_PHASE_PENDING || p.phase() == jobpolicyv1.PodPhase_POD_PHASE_RUNNING {
			m.Restarts += p.Restarts
		}
	}
	m.ActiveIndexes = c.indexSet((*pod).active)
	m.TerminatingIndexes = c.indexSet((*pod).terminating)
	return m
}

func one(condition bool) int32 {
	if condition {
		return 1
	}
	return 0
}

// indexSet returns the indexes of the pods for which is returns true.
func (c *counter) indexSet(is func(*pod) bool) *jobpolicyv1.IndexSet {
	var indexes []int32
	for _, p := range c.pods {
		if is(p) {
			indexes = appendIndex(indexes, c.index(p))
		}
	}
	return message(indexes)
}

func appendIndex(indexes []int32, index *int32) []int32 {
	if index == nil {
		return indexes
	}
	return append(indexes, *index)
}

// message is a set of indexes, or nil if there are none.
func message(indexes []int32) *jobpolicyv1.IndexSet {
	set := indexset.Of(indexes...)
	if set.Empty() {
		return nil
	}
	m := &jobpolicyv1.IndexSet{}
	for _, r := range set.Ranges() {
		m.Ranges = append(m.Ranges, &jobpolicyv1.IndexRange{First: r.First, Last: r.Last})
	}
	return m
}

// confirmed returns the recorded UIDs whose pod no longer exists or is no longer
// tracked.
func (c *counter) confirmed() [][]byte {
	held := map[string]bool{}
	for _, p := range c.pods {
		if p.Tracked {
			held[string(p.UID)] = true
		}
	}
	var out [][]byte
	// order does not matter: the UIDs are sorted afterwards
	for uid := range c.recorded {
		if !held[uid] {
			out = append(out, []byte(uid))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

package tracker

import (
	"bytes"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/leanpods"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Question says what a View is to hold.
type Question struct {
	// Uncounted are the UIDs in the status's uncountedTerminatedPods.
	Uncounted *batchv1.UncountedTerminatedPods
	// MaxRows is how many rows of unaccounted pods to list at most.
	MaxRows int
	// ActiveRows asks for rows of active pods, at most so many. 0: none.
	ActiveRows int
}

// View is what a request says about pods.
type View struct {
	Pods        *jobpolicyv1.PodSummary
	Unaccounted []*jobpolicyv1.UnaccountedPod
	Unlisted    *jobpolicyv1.UnlistedPods
	Confirmed   [][]byte
	Active      *jobpolicyv1.ActivePods
	InFlight    *jobpolicyv1.InFlight
	Retry       *jobpolicyv1.RetryFacts
	// Observed and Written are Freshness.pods_observed and pods_written.
	Observed, Written string
}

// View returns the facts as they are now. Its cost grows with the rows that it
// lists and with the number of index ranges, and with pods only where more are
// unaccounted for than it lists. err is an ErrUID.
func (t *Tracker) View(q Question) (View, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	uncounted := q.uncounted()
	v := View{
		Pods: &jobpolicyv1.PodSummary{
			Active: t.active, Ready: t.ready, Terminating: t.terminating,
			TrackedActive: t.trackedActive, Restarts: t.restarts,
			ActiveIndexes: t.activeIndexes.set(), TerminatingIndexes: t.terminatingIndexes.set(),
		},
		InFlight: t.inFlight(),
		Retry:    t.facts.message(),
		Observed: formatVersion(t.observed),
		Written:  formatVersion(t.written),

		Confirmed: t.confirmed(uncounted),
	}
	var err error
	if v.Unaccounted, v.Unlisted, err = t.rows(uncounted, q.MaxRows); err != nil {
		return View{}, err
	}
	if q.ActiveRows > 0 {
		if v.Active, err = t.activeRows(q.ActiveRows); err != nil {
			return View{}, err
		}
	}
	return v, nil
}

func formatVersion(rv uint64) string {
	if rv == 0 {
		return ""
	}
	return strconv.FormatUint(rv, 10)
}

func (q Question) uncounted() map[types.UID]bool {
	set := map[types.UID]bool{}
	if q.Uncounted == nil {
		return set
	}
	for _, uid := range q.Uncounted.Succeeded {
		set[uid] = true
	}
	for _, uid := range q.Uncounted.Failed {
		set[uid] = true
	}
	return set
}

// confirmed returns the UIDs whose pod is seen without the finalizer, or is not
// there. Pods are known in full from before the first View on, so a pod that is
// not known is not there. A UID that no pod can have is not told of.
func (t *Tracker) confirmed(uncounted map[types.UID]bool) [][]byte {
	var out [][]byte
	for uid := range uncounted {
		if r, known := t.pods[uid]; known && r.pod.Held {
			continue
		}
		if b, err := UIDBytes(uid); err == nil {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

func (t *Tracker) inFlight() *jobpolicyv1.InFlight {
	if len(t.creates) == 0 {
		return nil
	}
	var set indexes
	for c := range t.creates {
		if c.index != NoIndex {
			set.add(c.index)
		}
	}
	return &jobpolicyv1.InFlight{Creates: int32(len(t.creates)), CreateIndexes: set.set()}
}

// rows lists unaccounted pods, at most limit and all that the status has
// recorded: those are counted there already, and their release frees room. Of
// the others, those that have waited longest are listed, and those that have not
// ended and so cannot be recorded yet after all that can.
func (t *Tracker) rows(recorded map[types.UID]bool, limit int) ([]*jobpolicyv1.UnaccountedPod, *jobpolicyv1.UnlistedPods, error) {
	var listed []*record
	for uid := range recorded {
		if r, ok := t.pending[uid]; ok {
			listed = append(listed, r)
		}
	}
	t.tidyQueue()
	for _, countable := range []bool{true, false} {
		for _, r := range t.queue {
			if len(listed) >= limit {
				break
			}
			if t.isPending(r) && t.countable(r) == countable && !recorded[r.pod.UID] {
				listed = append(listed, r)
			}
		}
	}
	rows := make([]*jobpolicyv1.UnaccountedPod, 0, len(listed))
	for _, r := range listed {
		row, err := t.row(r)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *jobpolicyv1.UnaccountedPod) int { return bytes.Compare(a.Uid, b.Uid) })
	return rows, t.unlisted(listed), nil
}

// countable reports whether a pending pod can be recorded: it has ended, or being
// deleted is as good.
func (t *Tracker) countable(r *record) bool {
	return r.pod.Ended() || !t.policy.ReplaceFailedOnly
}

func (t *Tracker) row(r *record) (*jobpolicyv1.UnaccountedPod, error) {
	uid, err := UIDBytes(r.pod.UID)
	if err != nil {
		return nil, err
	}
	row := &jobpolicyv1.UnaccountedPod{
		Uid:                      uid,
		Phase:                    phase(r.pod),
		Deleting:                 r.deleting(),
		Index:                    indexField(r.share.index),
		FinishedTime:             Timestamp(finishedTime(r.pod, r.deletedAt)),
		IndexFailureCount:        r.pod.IndexFailures,
		IndexIgnoredFailureCount: r.pod.IndexIgnoredFailures,
	}
	if t.policy.Failures != nil && r.pod.Phase() != corev1.PodSucceeded {
		row.Failure = podFailure(r.pod, t.policy.Failures)
	}
	return row, nil
}

func indexField(ix int32) *int32 {
	if ix == NoIndex {
		return nil
	}
	return &ix
}

// unlisted is what the pending pods add up to without the listed ones.
func (t *Tracker) unlisted(listed []*record) *jobpolicyv1.UnlistedPods {
	if len(listed) == len(t.pending) {
		return nil
	}
	for _, r := range listed {
		t.countPending(r, -1)
	}
	m := &jobpolicyv1.UnlistedPods{
		Succeeded:        t.pendingSucceeded,
		Failed:           int32(len(t.pending)-len(listed)) - t.pendingSucceeded,
		SucceededIndexes: t.pendingSucceededIndexes.set(),
	}
	if t.policy.ReplaceFailedOnly {
		m.Ending = t.pendingNotEnded
	}
	for _, r := range listed {
		t.countPending(r, 1)
	}
	return m
}

func (t *Tracker) activeRows(limit int) (*jobpolicyv1.ActivePods, error) {
	m := &jobpolicyv1.ActivePods{Truncated: int(t.active) > limit}
	for _, r := range t.pods {
		if !r.share.active {
			continue
		}
		row, err := activeRow(r)
		if err != nil {
			return nil, err
		}
		m.Pods = append(m.Pods, row)
	}
	slices.SortFunc(m.Pods, func(a, b *jobpolicyv1.ActivePod) int { return bytes.Compare(a.Uid, b.Uid) })
	m.Pods = m.Pods[:min(len(m.Pods), limit)]
	return m, nil
}

func activeRow(r *record) (*jobpolicyv1.ActivePod, error) {
	uid, err := UIDBytes(r.pod.UID)
	if err != nil {
		return nil, err
	}
	row := &jobpolicyv1.ActivePod{
		Uid: uid, Phase: phase(r.pod), Index: indexField(r.share.index),
		Scheduled: r.pod.Scheduled, Ready: r.share.ready, Tracked: r.share.trackedActive,
		MaxRestarts: r.pod.MaxRestarts, MaxSidecarRestarts: r.pod.MaxSidecarRestarts,
	}
	if row.Ready && !r.pod.ReadyChanged.IsZero() {
		row.ReadySince = Timestamp(r.pod.ReadyChanged)
	}
	if !r.pod.Created.IsZero() {
		row.CreatedTime = Timestamp(r.pod.Created)
	}
	return row, nil
}

// Pod returns what was last seen of a pod.
func (t *Tracker) Pod(uid types.UID) (*leanpods.Pod, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.pods[uid]
	if !known {
		return nil, false
	}
	return r.pod, true
}

// Strays returns the pods that the Job controls and its selector does not match.
func (t *Tracker) Strays() []*leanpods.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*leanpods.Pod, 0, len(t.strays))
	for _, r := range t.strays {
		out = append(out, r.pod)
	}
	return out
}

// Held returns the pods that hold the finalizer.
func (t *Tracker) Held() []*leanpods.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*leanpods.Pod
	for _, r := range t.pods {
		if r.pod.Held {
			out = append(out, r.pod)
		}
	}
	return out
}

// Idle reports whether nothing runs, is ending, or is being created, so that
// the Job may be able to finish.
func (t *Tracker) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.active == 0 && t.terminating == 0 && len(t.creates) == 0
}

// Len returns the number of pods known.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.pods)
}

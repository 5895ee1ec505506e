package tracker

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// rows lists unaccounted pods. First come all pods that the status has recorded, because
// their release makes room for others. The others follow in the order of their priority, until
// the list has limit pods; of pods with the same priority, those that have waited longest come
// first.
func (p *pods) rows(recorded map[types.UID]bool, limit int, now time.Time) ([]*jobpolicyv1.UnaccountedPod, *jobpolicyv1.UnlistedPods, error) {
	var listed []*record
	for uid := range recorded {
		if r, ok := p.unaccounted.records[uid]; ok {
			listed = append(listed, r)
		}
	}
	p.unaccounted.tidy()
	for priority := range priorities {
		for _, r := range p.unaccounted.queue {
			if len(listed) >= limit {
				break
			}
			if p.unaccounted.has(r) && p.policy.priority(r) == priority && !recorded[r.pod.UID] {
				listed = append(listed, r)
			}
		}
	}
	listed = p.withSiblings(listed, recorded)
	rows := make([]*jobpolicyv1.UnaccountedPod, 0, len(listed))
	for _, r := range listed {
		row, err := p.policy.row(r, now)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *jobpolicyv1.UnaccountedPod) int { return bytes.Compare(a.Uid, b.Uid) })
	return rows, p.unlisted(listed), nil
}

// withSiblings adds, if failures are limited per index, all unaccounted pods that share an index
// with a listed pod. The engine keeps the last failed pod of an index until it is replaced, and
// needs all pods of the index to know which one is the last. An index has few pods at a time,
// because each new pod replaces the one before. If a request has no room for all pods of an
// index, none of them is listed, unless the status has recorded one of them.
func (p *pods) withSiblings(listed []*record, recorded map[types.UID]bool) []*record {
	if !p.policy.LimitedPerIndex || len(listed) == len(p.unaccounted.records) {
		return listed
	}
	size := map[int32]int{}
	for _, r := range p.unaccounted.records {
		size[r.share.index]++
	}
	var with []*record
	fits, room := map[int32]bool{}, maxRows
	for _, r := range listed {
		switch ix := r.share.index; {
		case ix == NoIndex:
			with = append(with, r)
			room--
		case !fits[ix] && (size[ix] <= room || recorded[r.pod.UID]):
			fits[ix] = true
			room -= size[ix]
		}
	}
	for _, r := range p.unaccounted.queue {
		if p.unaccounted.has(r) && fits[r.share.index] {
			with = append(with, r)
		}
	}
	return with
}

// maxRows is the contract's limit on unaccounted_pods.
const maxRows = 100_000

// A priority is a pod's rank in a short list: pods of a lower one get places first.
type priority int

const (
	// leavesSoon: the pod leaves the list with the next statuses.
	leavesSoon priority = iota
	// staysUntilReplaced: with limits per index, a failed pod stays in the list until it is
	// replaced. If such pods were listed first, they could hide all others.
	staysUntilReplaced
	// notCountedYet: the policy counts the pod only once it has ended.
	notCountedYet
	priorities
)

func (p *Policy) priority(r *record) priority {
	switch {
	case !r.pod.Ended() && p.ReplaceFailedOnly:
		return notCountedYet
	case p.LimitedPerIndex && r.pod.Phase() != corev1.PodSucceeded:
		return staysUntilReplaced
	default:
		return leavesSoon
	}
}

func (p *Policy) row(r *record, now time.Time) (*jobpolicyv1.UnaccountedPod, error) {
	uid, err := wire.UIDBytes(r.pod.UID)
	if err != nil {
		return nil, err
	}
	row := &jobpolicyv1.UnaccountedPod{
		Uid:                      uid,
		Phase:                    wire.PodPhase(r.pod.Phase()),
		Deleting:                 r.pod.Deleting,
		Index:                    indexField(r.share.index),
		FinishedTime:             wire.Timestamp(notAfter(finishedTime(r.pod), r.endSeen, now)),
		IndexFailureCount:        r.pod.IndexFailures,
		IndexIgnoredFailureCount: r.pod.IndexIgnoredFailures,
	}
	if p.Failures != nil && r.pod.Phase() != corev1.PodSucceeded {
		row.Failure = wire.PodFailure(r.pod, p.Failures)
	}
	return row, nil
}

func indexField(ix int32) *int32 {
	if ix == NoIndex {
		return nil
	}
	return &ix
}

// unlisted sums up the unaccounted pods that are not listed.
func (p *pods) unlisted(listed []*record) *jobpolicyv1.UnlistedPods {
	all := &p.unaccounted
	if len(listed) == len(all.records) {
		return nil
	}
	for _, r := range listed {
		all.count(r, -1)
	}
	m := &jobpolicyv1.UnlistedPods{
		Succeeded:        all.succeeded,
		Failed:           int32(len(all.records)-len(listed)) - all.succeeded,
		SucceededIndexes: all.succeededIndexes.set(),
	}
	if p.policy.LimitedPerIndex {
		m.FailedIndexes = cmp.Or(all.otherIndexes.set(), &jobpolicyv1.IndexSet{})
	}
	if p.policy.ReplaceFailedOnly {
		m.Terminating = all.terminating
	}
	for _, r := range listed {
		all.count(r, 1)
	}
	return m
}

// activeRows lists active pods, at most limit. It leaves out pods whose release is
// confirmed: they are accounted for, whatever becomes of them (I3). Once the status does
// not list them any more, they are active pods like others.
func (p *pods) activeRows(recorded map[types.UID]bool, limit int) (*jobpolicyv1.ActivePods, error) {
	m := &jobpolicyv1.ActivePods{}
	for uid, r := range p.records {
		if !r.share.active || (recorded[uid] && !r.pod.HasTrackingFinalizer) {
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
	m.Truncated = len(m.Pods) < int(p.totals.active)
	return m, nil
}

func activeRow(r *record) (*jobpolicyv1.ActivePod, error) {
	uid, err := wire.UIDBytes(r.pod.UID)
	if err != nil {
		return nil, err
	}
	row := &jobpolicyv1.ActivePod{
		Uid: uid, Phase: wire.PodPhase(r.pod.Phase()), Index: indexField(r.share.index),
		Scheduled: r.pod.Scheduled, Ready: r.share.ready, Tracked: r.share.trackedActive,
		MaxRestarts: r.pod.MaxRestarts, MaxSidecarRestarts: r.pod.MaxSidecarRestarts,
	}
	if row.Ready && !r.pod.ReadyChanged.IsZero() {
		row.ReadySince = wire.Timestamp(r.pod.ReadyChanged)
	}
	if !r.pod.Created.IsZero() {
		row.CreatedTime = wire.Timestamp(r.pod.Created)
	}
	return row, nil
}

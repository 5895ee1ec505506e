package snapshot

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// choose splits the unaccounted pods into those that get a row and the rest. They come in
// the order of their priority, and of pods with the same priority, those that finished first come
// first.
func (c *counter) choose(limit int) (listed, rest []*pod) {
	var pods []*pod
	for _, p := range c.pods {
		if p.unaccounted() {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(c.priority(a), c.priority(b)), a.finished().Compare(b.finished()), bytes.Compare(a.UID, b.UID))
	})
	n := 0
	for n < len(pods) && (n < limit || c.priority(pods[n]) == 0) {
		n++
	}
	listed, rest = pods[:n:n], pods[n:]
	if !c.perIndex() {
		return listed, rest
	}
	return c.withSiblings(listed, rest)
}

// priority says which pods get a row first. 0: the status records the pod; its release makes
// room there. 1: the pod leaves the list with the next statuses. 2: it may stay for long,
// because with limits per index a failed pod stays until it is replaced; before others,
// such pods would hide them. 3: it cannot be recorded yet, because it has not ended.
func (c *counter) priority(p *pod) int {
	switch {
	case c.recorded[string(p.UID)]:
		return 0
	case !p.ended() && c.replaceFailedOnly():
		return 3
	case c.perIndex() && !p.succeeded():
		return 2
	default:
		return 1
	}
}

// withSiblings moves to listed the pods that share an index with a listed one, as long as
// there is room for all of them; otherwise none of that index is listed. The engine keeps
// the last failed pod of an index until it is replaced, and needs all of them to know
// which one that is.
func (c *counter) withSiblings(listed, rest []*pod) (with, without []*pod) {
	pods := slices.Concat(listed, rest)
	size := map[int32]int{}
	for _, p := range pods {
		if ix := c.index(p); ix != nil {
			size[*ix]++
		}
	}
	is, room := map[int32]bool{}, maxUnaccounted
	for _, p := range listed {
		ix := c.index(p)
		switch {
		case ix == nil:
			room--
		case !is[*ix] && (size[*ix] <= room || c.priority(p) == 0):
			is[*ix] = true
			room -= size[*ix]
		}
	}
	for i, p := range pods {
		ix := c.index(p)
		if (ix == nil && i < len(listed)) || (ix != nil && is[*ix]) {
			with = append(with, p)
			continue
		}
		without = append(without, p)
	}
	return with, without
}

func (c *counter) rows(listed []*pod) []*jobpolicyv1.UnaccountedPod {
	rows := make([]*jobpolicyv1.UnaccountedPod, 0, len(listed))
	for _, p := range listed {
		row := &jobpolicyv1.UnaccountedPod{
			Uid: p.UID, Phase: p.phase(), Deleting: p.Deleting, Index: c.index(p),
			FinishedTime:             timestamppb.New(p.finished()),
			IndexFailureCount:        p.IndexFailures,
			IndexIgnoredFailureCount: p.IndexIgnoredFailures,
		}
		if !p.succeeded() {
			row.Failure = c.failure(p)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *jobpolicyv1.UnaccountedPod) int { return bytes.Compare(a.Uid, b.Uid) })
	return rows
}

// unlisted counts the pods without a row; nil if every pod has one.
func (c *counter) unlisted(rest []*pod) *jobpolicyv1.UnlistedPods {
	if len(rest) == 0 {
		return nil
	}
	m := &jobpolicyv1.UnlistedPods{}
	var succeeded, others []int32
	for _, p := range rest {
		if p.succeeded() {
			m.Succeeded++
			succeeded = appendIndex(succeeded, c.index(p))
			continue
		}
		m.Failed++
		others = appendIndex(others, c.index(p))
		if c.replaceFailedOnly() {
			m.Terminating += one(!p.ended())
		}
	}
	m.SucceededIndexes = message(succeeded)
	if c.perIndex() {
		m.FailedIndexes = cmp.Or(message(others), &jobpolicyv1.IndexSet{})
	}
	return m
}

// activePods lists active pods, without those whose release is confirmed: they are
// accounted for, whatever happens to them next (I3).
func (c *counter) activePods() *jobpolicyv1.ActivePods {
	m := &jobpolicyv1.ActivePods{}
	active := 0
	for _, p := range c.pods {
		if !p.active() {
			continue
		}
		active++
		if p.Tracked || !c.recorded[string(p.UID)] {
			m.Pods = append(m.Pods, c.activeRow(p))
		}
	}
	slices.SortFunc(m.Pods, func(a, b *jobpolicyv1.ActivePod) int { return bytes.Compare(a.Uid, b.Uid) })
	m.Pods = m.Pods[:min(len(m.Pods), maxActiveRows)]
	m.Truncated = len(m.Pods) < active
	return m
}

func (c *counter) activeRow(p *pod) *jobpolicyv1.ActivePod {
	row := &jobpolicyv1.ActivePod{
		Uid: p.UID, Phase: p.phase(), Index: c.index(p),
		Scheduled: p.Scheduled, Ready: p.Ready, Tracked: p.Tracked,
		MaxRestarts: p.MaxRestarts, MaxSidecarRestarts: p.MaxSidecarRestarts,
		CreatedTime: optionalTime(p.Created),
	}
	if p.Ready {
		row.ReadySince = optionalTime(p.ReadySince)
	}
	return row
}

func optionalTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

package podfacts

import (
	"cmp"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// staleQueue is how many removed pods the queue may contain in any case.
const staleQueue = 16

// unaccounted are the pods that are finished or being deleted and still tracked.
type unaccounted[P any] struct {
	pods map[string]*Counted[P] // By UID.
	// queue holds the pods in the order in which they were added, and some that were
	// removed since.
	queue []*Counted[P]

	// Sums, so that a request need not go through the pods that it does not list.
	succeeded, terminating         int32
	succeededIndexes, otherIndexes indexes
}

// add adds a pod. One that was removed and is still in the queue gets its old place
// back: so a new version of a pod does not lose the place of the old one.
func (u *unaccounted[P]) add(uid string, e *Counted[P]) {
	u.pods[uid], e.uid, e.listed = e, uid, true
	u.count(e, 1)
	if !e.queued {
		e.queued = true
		u.queue = append(u.queue, e)
	}
}

func (u *unaccounted[P]) remove(e *Counted[P]) {
	u.count(e, -1)
	delete(u.pods, e.uid)
	e.listed = false
}

// count adds a pod to the sums, sign times: 1 or -1.
func (u *unaccounted[P]) count(e *Counted[P], sign int32) {
	countIf(&u.terminating, !e.ended, sign)
	of := &u.otherIndexes
	if e.succeeded {
		u.succeeded += sign
		of = &u.succeededIndexes
	}
	if e.Share.index != noIndex {
		of.change(e.Share.index, sign)
	}
}

// tidy takes removed pods out of the queue: those at its front, and all others once
// they are more than half of it.
func (u *unaccounted[P]) tidy() {
	for len(u.queue) > 0 && !u.queue[0].listed {
		u.queue[0].queued = false
		u.queue[0] = nil
		u.queue = u.queue[1:]
	}
	if len(u.queue) <= 2*len(u.pods)+staleQueue {
		return
	}
	u.queue = slices.DeleteFunc(u.queue, func(e *Counted[P]) bool {
		e.queued = e.listed
		return !e.queued
	})
}

// choose returns the pods that get a row. First come all pods that the status has recorded,
// because their release makes room for others. The others follow in the order of their priority,
// until there are limit pods; of pods with the same priority, those that have waited longest come
// first.
func (c *Counter[P]) choose(recorded UIDs, limit int) []*Counted[P] {
	var chosen []*Counted[P]
	first := map[*Counted[P]]bool{}
	for uid := range recorded {
		if e, ok := c.unaccounted.pods[uid]; ok {
			first[e] = true
			chosen = append(chosen, e)
		}
	}
	c.unaccounted.tidy()
	for priority := range priorities {
		for _, e := range c.unaccounted.queue {
			if len(chosen) >= limit {
				break
			}
			if e.listed && priorityOf(&c.policy, e) == priority && !first[e] {
				chosen = append(chosen, e)
			}
		}
	}
	return c.withSiblings(chosen, first)
}

// withSiblings adds, if failures are limited per index, all unaccounted pods that share an index
// with a chosen pod. The engine keeps the last failed pod of an index until it is replaced, and
// needs all pods of the index to know which one is the last. An index has few pods at a time,
// because each new pod replaces the one before. If a request has no room for all pods of an
// index, none of them is listed, unless the status has recorded one of them.
func (c *Counter[P]) withSiblings(chosen []*Counted[P], recorded map[*Counted[P]]bool) []*Counted[P] {
	all := &c.unaccounted
	if !c.policy.LimitedPerIndex || len(chosen) == len(all.pods) {
		return chosen
	}
	size := map[int32]int{}
	for _, e := range all.pods {
		size[e.Share.index]++
	}
	var with []*Counted[P]
	fits, room := map[int32]bool{}, maxRows
	for _, e := range chosen {
		switch ix := e.Share.index; {
		case ix == noIndex:
			with = append(with, e)
			room--
		case !fits[ix] && (size[ix] <= room || recorded[e]):
			fits[ix] = true
			room -= size[ix]
		}
	}
	for _, e := range all.queue {
		if e.listed && fits[e.Share.index] {
			with = append(with, e)
		}
	}
	return with
}

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

func priorityOf[P any](p *Policy, e *Counted[P]) priority {
	switch {
	case !e.ended && p.ReplaceFailedOnly:
		return notCountedYet
	case p.LimitedPerIndex && !e.succeeded:
		return staysUntilReplaced
	default:
		return leavesSoon
	}
}

// unlisted sums up the unaccounted pods that have no row; nil if all have one.
func (c *Counter[P]) unlisted(listed []*Counted[P]) *jobpolicyv1.UnlistedPods {
	all := &c.unaccounted
	if len(listed) == len(all.pods) {
		return nil
	}
	for _, e := range listed {
		all.count(e, -1)
	}
	m := &jobpolicyv1.UnlistedPods{
		Succeeded:        all.succeeded,
		Failed:           int32(len(all.pods)-len(listed)) - all.succeeded,
		SucceededIndexes: all.succeededIndexes.set(),
	}
	if c.policy.LimitedPerIndex {
		m.FailedIndexes = cmp.Or(all.otherIndexes.set(), &jobpolicyv1.IndexSet{})
	}
	if c.policy.ReplaceFailedOnly {
		m.Terminating = all.terminating
	}
	for _, e := range listed {
		all.count(e, 1)
	}
	return m
}

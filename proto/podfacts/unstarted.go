package podfacts

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxUnstarted is the contract's limit on unstarted_pods.
const maxUnstarted = 10_000

// StartDue is when a pod that does not start has had the time that one of the options gives it; ok is
// false if none is about its problem.
func StartDue(never []*jobpolicyv1.NeverStarted, start *jobpolicyv1.PodStart) (at time.Time, ok bool) {
	i := slices.IndexFunc(never, func(n *jobpolicyv1.NeverStarted) bool { return n.GetProblem() == start.GetProblem() })
	if i < 0 {
		return time.Time{}, false
	}
	return start.GetSince().AsTime().Add(time.Duration(never[i].GetAfterSeconds()) * time.Second), true
}

// Unstarted lists the active pods that have a problem of options.never_started, in ascending order of
// UID. If they are more than a request may have, it lists those whose time is over first. It
// leaves out pods whose release is confirmed (Active). Only with Policy.Starts.
func (c *Counter[P]) Unstarted(never []*jobpolicyv1.NeverStarted, recorded UIDs) []*jobpolicyv1.ActivePod {
	type due struct {
		row *jobpolicyv1.ActivePod
		at  time.Time
	}
	var found []due
	for e := range c.unstarted {
		pod := c.facts(e.Pod)
		at, asked := StartDue(never, pod.Start)
		if !asked || !pod.Tracked && recorded[string(pod.UID)] {
			continue
		}
		row := activeRow(&pod, &e.Share)
		row.PodName, row.Start = pod.Name, pod.Start
		found = append(found, due{row, at})
	}
	slices.SortFunc(found, func(a, b due) int {
		return cmp.Or(a.at.Compare(b.at), bytes.Compare(a.row.Uid, b.row.Uid))
	})
	rows := make([]*jobpolicyv1.ActivePod, 0, len(found))
	for _, f := range found[:min(len(found), maxUnstarted)] {
		rows = append(rows, f.row)
	}
	slices.SortFunc(rows, func(a, b *jobpolicyv1.ActivePod) int { return bytes.Compare(a.Uid, b.Uid) })
	return rows
}

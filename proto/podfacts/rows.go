package podfacts

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxRows is the contract's limit on unaccounted_pods.
const maxRows = 100_000

// UIDs is a set of UIDs, each as its bytes.
type UIDs map[string]bool

// Recorded are the UIDs in a status's list of uncounted pods.
func Recorded(status *jobpolicyv1.JobStatus) UIDs {
	set := UIDs{}
	uncounted := status.GetUncounted()
	for _, uid := range slices.Concat(uncounted.GetSucceeded(), uncounted.GetFailed()) {
		set[string(uid)] = true
	}
	return set
}

// Confirmed returns the recorded UIDs of pods that are not tracked any more or do not exist, in
// ascending order.
func (recorded UIDs) Confirmed(tracked func(uid string) bool) [][]byte {
	var out [][]byte
	for uid := range recorded {
		if !tracked(uid) {
			out = append(out, []byte(uid))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// Wall converts a Counted.EndSeen to wall time. Nil if no EndSeen is known.
type Wall func(seen time.Time) time.Time

// notAfter is when a pod ended, but no later than when that was seen. A clock that was set back, or
// a node whose clock is fast, must not make a retry delay longer.
func (w Wall) notAfter(ended, seen time.Time) *timestamppb.Timestamp {
	if w != nil && !seen.IsZero() {
		if by := w(seen); by.Before(ended) {
			ended = by
		}
	}
	return timestamppb.New(ended)
}

// Rows lists unaccounted pods, in ascending order of UID, and sums up those that it does not list
// (nil: it lists all). It lists at most limit pods; more if the status has recorded more, or if
// failures are limited per index: then as many as a request may have.
func (c *Counter[P]) Rows(recorded UIDs, limit int, wall Wall) ([]*jobpolicyv1.UnaccountedPod, *jobpolicyv1.UnlistedPods) {
	listed := c.choose(recorded, limit)
	rows := make([]*jobpolicyv1.UnaccountedPod, 0, len(listed))
	for _, e := range listed {
		rows = append(rows, c.row(e, wall))
	}
	slices.SortFunc(rows, func(a, b *jobpolicyv1.UnaccountedPod) int { return bytes.Compare(a.Uid, b.Uid) })
	return rows, c.unlisted(listed)
}

func (c *Counter[P]) row(e *Counted[P], wall Wall) *jobpolicyv1.UnaccountedPod {
	pod := c.facts(e.Pod)
	row := &jobpolicyv1.UnaccountedPod{
		Uid: pod.UID, Phase: pod.phase(), Deleting: pod.Deleting, Index: indexField(e.Share.index),
		FinishedTime:             wall.notAfter(pod.EndTime(), e.EndSeen),
		IndexFailureCount:        pod.IndexFailures,
		IndexIgnoredFailureCount: pod.IndexIgnoredFailures,
	}
	if !pod.succeeded() {
		row.Failure = c.policy.failure(&pod)
	}
	return row
}

func indexField(ix int32) *int32 {
	if ix == noIndex {
		return nil
	}
	return &ix
}

// Active lists those of the pods that are active, in ascending order of UID, at most limit. It leaves
// out pods whose release is confirmed: they are accounted for, whatever becomes of them (I3). Once
// the status does not list them any more, they are active pods like others. options are the Job's.
func (c *Counter[P]) Active(pods iter.Seq[*Counted[P]], recorded UIDs, limit int, options *jobpolicyv1.JobOptions) *jobpolicyv1.ActivePods {
	m := &jobpolicyv1.ActivePods{}
	ends := options.GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS
	for e := range pods {
		if !e.Share.Active {
			continue
		}
		if pod := c.facts(e.Pod); pod.Tracked || !recorded[string(pod.UID)] {
			row := activeRow(&pod, &e.Share)
			if ends {
				row.PodName, row.StartTime = pod.Name, optionalTime(pod.Started)
				row.ActiveDeadlineSeconds, row.GracePeriodSeconds = pod.ActiveDeadlineSeconds, pod.GracePeriodSeconds
			}
			m.Pods = append(m.Pods, row)
		}
	}
	slices.SortFunc(m.Pods, func(a, b *jobpolicyv1.ActivePod) int { return bytes.Compare(a.Uid, b.Uid) })
	m.Pods = m.Pods[:min(len(m.Pods), limit)]
	tellLast(m.Pods, options)
	m.Truncated = len(m.Pods) < int(c.Totals.Active)
	return m
}

func activeRow(pod *Pod, share *Share) *jobpolicyv1.ActivePod {
	row := &jobpolicyv1.ActivePod{
		Uid: pod.UID, Phase: pod.phase(), Index: indexField(share.index),
		Scheduled: pod.Scheduled, Ready: share.Ready, Tracked: share.TrackedActive,
		MaxRestarts: pod.MaxRestarts, MaxSidecarRestarts: pod.MaxSidecarRestarts,
		CreatedTime: optionalTime(pod.Created),
	}
	if row.Ready {
		row.ReadySince = optionalTime(pod.ReadySince)
	}
	if pod.LastExit != nil {
		row.PodName, row.LastExit, row.LastExitTime = pod.Name, pod.LastExit, optionalTime(pod.LastExited)
	}
	return row
}

func optionalTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

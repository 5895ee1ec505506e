package engine

import (
	"bytes"
	"cmp"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The ledger counts each finished pod exactly once, wherever the process is stopped:
//
//	record the UID in the status → release the finalizer → see it confirmed →
//	move it into the counters
//
// One status write does both halves: it counts the pods whose release was confirmed
// since the last decision, and records the pods that this decision releases.

// A ledger holds the entries of one decision.
type ledger struct {
	// uncounted is status.uncounted after this decision.
	uncounted *jobpolicyv1.UncountedTerminatedPods
	// succeeded and failed are the counters after this decision.
	succeeded, failed int32
	// release holds the UIDs whose finalizer may go once the status is written.
	release [][]byte
	// actions counts the recorded failures by failure policy action.
	actions map[jobpolicyv1.PodFailurePolicyAction]int32
	// full is true if a pod was not recorded because the status lists as many as it may.
	full bool
	// newIndexes counts succeeded pods that need no UID in the status, because their
	// index is recorded there.
	newIndexes int
}

func keepLedger(s *snapshot, t tally, v verdict, p plan) ledger {
	l := countConfirmed(s)
	if s.indexed {
		l.succeeded = succeededIndexes(s, t)
	}
	for _, r := range oldestFirst(s, t.rows) {
		l.enter(s, v, r, awaitsReplacement(t, r))
	}
	for _, pod := range leaving(s, v, p) {
		l.enter(s, v, leavingRow(s, pod), false)
	}
	slices.SortFunc(l.release, bytes.Compare)
	return l
}

// oldestFirst orders rows by the time when the pods finished, if there may be more
// pods than the status may record. So no pod waits forever behind later ones.
func oldestFirst(s *snapshot, rows []podRow) []podRow {
	if len(rows) <= s.maxUncountedPods {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b podRow) int {
		x, y := a.pod.GetFinishedTime(), b.pod.GetFinishedTime()
		return cmp.Or(cmp.Compare(x.GetSeconds(), y.GetSeconds()), cmp.Compare(x.GetNanos(), y.GetNanos()), byIndex(a, b))
	})
	return rows
}

// countConfirmed moves confirmed UIDs from the lists into the counters (I2).
func countConfirmed(s *snapshot) ledger {
	before := s.status.GetUncounted()
	l := ledger{
		uncounted: &jobpolicyv1.UncountedTerminatedPods{},
		actions:   map[jobpolicyv1.PodFailurePolicyAction]int32{},
	}
	l.uncounted.Succeeded = withoutConfirmed(s, before.GetSucceeded())
	l.uncounted.Failed = withoutConfirmed(s, before.GetFailed())
	l.succeeded = clamp32(int64(s.status.GetSucceeded()) + int64(len(before.GetSucceeded())-len(l.uncounted.Succeeded)))
	l.failed = clamp32(int64(s.status.GetFailed()) + int64(len(before.GetFailed())-len(l.uncounted.Failed)))
	return l
}

// succeededIndexes is status.succeeded of an INDEXED Job. It falls when the Job is
// scaled down, but the API server accepts that only while completions equals
// parallelism. If a user changes parallelism again before the status is written, the
// count stays as it is, because otherwise no status would ever be accepted.
func succeededIndexes(s *snapshot, t tally) int32 {
	n := clamp32(t.succeeded)
	if s.spec.GetCompletions() == s.spec.GetParallelism() {
		return n
	}
	return max(n, s.status.GetSucceeded())
}

func withoutConfirmed(s *snapshot, uids [][]byte) [][]byte {
	var left [][]byte
	for _, uid := range uids {
		if !s.confirmed[string(uid)] {
			left = append(left, uid)
		}
	}
	return left
}

// awaitsReplacement reports whether a failed pod must keep its finalizer until
// its replacement exists.
func awaitsReplacement(t tally, r podRow) bool {
	if r.pod.Index == nil || !r.inRange {
		return false
	}
	last, ok := t.awaiting[r.pod.GetIndex()]
	return ok && bytes.Equal(last.pod.GetUid(), r.pod.GetUid())
}

// leaving returns the active pods whose finalizers this decision releases: those
// deleted because of a verdict, and all pods of a Job that is being deleted.
func leaving(s *snapshot, v verdict, p plan) []*jobpolicyv1.ActivePod {
	var pods []*jobpolicyv1.ActivePod
	switch {
	case s.deleting():
		pods = slices.Clone(s.req.GetActivePods().GetPods())
	case v.reached():
		for _, d := range p.deletions {
			pods = append(pods, d.pod)
		}
	}
	tracked := pods[:0]
	for _, pod := range pods {
		if pod.GetTracked() {
			tracked = append(tracked, pod)
		}
	}
	slices.SortFunc(tracked, func(a, b *jobpolicyv1.ActivePod) int { return bytes.Compare(a.GetUid(), b.GetUid()) })
	return tracked
}

// leavingRow is the ledger's row for an active pod that is deleted now.
func leavingRow(s *snapshot, pod *jobpolicyv1.ActivePod) podRow {
	return podRow{
		pod:      &jobpolicyv1.UnaccountedPod{Uid: pod.GetUid(), Phase: pod.GetPhase(), Deleting: true, Index: pod.Index},
		inRange:  s.inRange(pod.Index),
		recorded: s.recordedSucceeded[string(pod.GetUid())] || s.recordedFailed[string(pod.GetUid())],
	}
}

// enter records one pod, if it must be recorded, and releases it. A pod that the status
// has recorded is always released, because it is counted only after that is confirmed.
func (l *ledger) enter(s *snapshot, v verdict, r podRow, awaitsReplacement bool) {
	if r.recorded {
		l.release = append(l.release, r.pod.GetUid())
		return
	}
	final := v.reached() || s.deleting()
	if !final && (awaitsReplacement || (!r.succeeded && !r.failed)) {
		return
	}
	if l.newIndexes+len(l.uncounted.Succeeded)+len(l.uncounted.Failed) >= s.maxUncountedPods {
		l.full = true
		return
	}
	l.record(s, v, r)
	l.release = append(l.release, r.pod.GetUid())
}

// record writes a pod's end into the status. When the Job has failed, a pod
// that has not ended is counted as failed; when it has succeeded or is being
// deleted, such a pod is not counted.
func (l *ledger) record(s *snapshot, v verdict, r podRow) {
	if !r.inRange {
		return
	}
	if r.succeeded {
		if s.indexed {
			if !s.completed.Has(r.pod.GetIndex()) {
				l.newIndexes++
			}
			return
		}
		l.uncounted.Succeeded = append(l.uncounted.Succeeded, r.pod.GetUid())
		return
	}
	if !r.failed && (v.kind != fails || s.deleting()) {
		return
	}
	if s.spec.GetPodFailurePolicy() != nil && r.match.action != 0 {
		l.actions[r.match.action]++
	}
	if r.match.counts() {
		l.uncounted.Failed = append(l.uncounted.Failed, r.pod.GetUid())
	}
}

// empty reports that nothing is left to count.
func (l ledger) empty() bool {
	return len(l.uncounted.Succeeded)+len(l.uncounted.Failed) == 0
}

// unaccountedUIDs lists every pod that is known to hold the finalizer.
func unaccountedUIDs(s *snapshot) [][]byte {
	var uids [][]byte
	for _, pod := range s.req.GetUnaccountedPods() {
		uids = append(uids, pod.GetUid())
	}
	for _, pod := range s.req.GetActivePods().GetPods() {
		if pod.GetTracked() {
			uids = append(uids, pod.GetUid())
		}
	}
	slices.SortFunc(uids, bytes.Compare)
	return uids
}

package world

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// Without options of its own, the retry delay of a Job is upstream's: firstDelay after one failure, doubled with each
// further one in a row, up to longestDelay.
const (
	firstDelay   = 10 * time.Second
	longestDelay = 10 * time.Minute
)

func (j *judge) delayAfter(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	delay := j.firstDelay
	for range failures - 1 {
		if delay *= 2; delay >= j.longestDelay {
			break
		}
	}
	return min(delay, j.longestDelay)
}

// judgeDelay checks I12, and I10, because everything it uses is in the cluster: failed
// pods are replaced no faster than the retry delay allows. slack is how many more pods
// the Job would take; the executor need not have seen that many ends. Nor need it have seen
// the ends of pods that it let go while they ran: they leave room in any case.
func (j *judge) judgeDelay(w apiserver.Write, r *jobRecord, pod *corev1.Pod, slack int) {
	if perIndex(r.job) {
		j.judgeIndexDelay(w, r, pod)
		return
	}
	now := w.Time.Add(j.askew())
	var known, others []*podRecord
	for _, p := range j.delaying(r, w.By) {
		if j.mustKnowEnd(r, p, w.By) {
			known = append(known, p)
		} else {
			others = append(others, p)
			if p.released.by == w.By && p.endedAt.After(p.released.at) {
				slack++
			}
		}
	}
	slices.SortStableFunc(others, func(a, b *podRecord) int { // A list shows them in any order; here those that delay most come last.
		return cmp.Or(cmp.Compare(delays(a), delays(b)), a.finished.Compare(b.finished))
	})
	ends := append(known, others...)
	seen := max(len(known), len(ends)-max(0, slack))
	loose := j.looseSuccess(r, w.By)
	var due time.Time
	var failures int
	for n := seen; n <= len(ends); n++ {
		count, last := inARow(ends[:n], loose)
		at := last.Add(j.leastDelay(r, count))
		if count == 0 || !now.Before(at) {
			return
		}
		if n == seen || at.Before(due) {
			due, failures = at, count
		}
	}
	j.breach("I12", r.key, r.uid, "%s created pod %s %s before the retry delay had passed: %d pods had failed in a row, and the next one may come %s after the last",
		w.By, w.Key.Name, due.Sub(now), failures, j.leastDelay(r, failures))
}

// mustKnowEnd reports whether an executor must know that a pod was due to be counted:
// it has recorded the pod itself, or every view includes it.
func (j *judge) mustKnowEnd(r *jobRecord, p *podRecord, by string) bool {
	e := r.entries[p.uid]
	return j.knows(by, p.dueAt) || (e != nil && j.told(e.mark, by))
}

// delaying returns the ends of pods that affect the retry delay: the successes that the
// executor may know, and the failures that it must know.
func (j *judge) delaying(r *jobRecord, by string) (ends []*podRecord) {
	for _, p := range r.ends {
		switch {
		case p.maySucceed() && j.askedFor(r, p) && !(p.gone && !p.pruned && p.goneAt.Before(j.writer(by).began)):
		case !p.maySucceed() && j.always(r, func(job *batchv1.Job) bool { return inRange(job, p.pod) }) && (j.shown(p, by) || j.mustKnowEnd(r, p, by)) && !j.lost(r, p, by) && !(j.podjob && (p.job != r || p.leavesNoTrace())):
		default:
			continue
		}
		ends = append(ends, p)
	}
	return ends
}

// leavesNoTrace reports whether nothing in the cluster shows the end of a released pod: it is gone, or
// it was released while it was being deleted and had not ended. Only a controller that remembers the
// pod knows that it has failed.
func (p *podRecord) leavesNoTrace() bool {
	return !p.released.at.IsZero() && (p.gone || !ledger.Ended(p.pod) || p.endedAt.After(p.released.at))
}

// maySucceed reports whether the pod succeeded, or was once reported to have done so.
func (p *podRecord) maySucceed() bool { return p.succeeded() || p.flipped }

// askedFor reports whether the Job wanted the pod's index at some time since the pod
// was due to be counted, as far as an executor knew then. A success stays valid if the Job
// no longer wants the index.
func (j *judge) askedFor(r *jobRecord, p *podRecord) bool {
	return inRange(r.job, p.pod) || slices.ContainsFunc(r.earlier, func(e earlierSpec) bool {
		return !e.until.Add(j.calmLag).Before(p.dueAt) && inRange(e.job, p.pod)
	})
}

// delays is 1 for a failure that causes a delay, and 0 for any other end.
func delays(p *podRecord) int {
	if p.maySucceed() || disrupted(p.version()) || disrupted(p.pod) {
		return 0
	}
	return 1
}

// inARow counts the failures after the last success, and returns when the last of them
// was. A failure in the same second as a success does not count as later, because the
// cluster does not show which came first. Disruptions cause no delay. other is an
// additional success.
func inARow(ends []*podRecord, other time.Time) (failures int, last time.Time) {
	success := other
	for _, p := range ends {
		if p.maySucceed() {
			success = latest(success, p.saidToEnd)
		}
	}
	for _, p := range ends {
		if delays(p) == 0 || !p.finished.After(success) {
			continue
		}
		failures++
		last = latest(last, p.finished)
	}
	return failures, last
}

// heldUntil is the latest time until which a retry delay may hold back pods of the Job.
// It counts every failure that an executor may count since the last success that it
// must know.
func (j *judge) heldUntil(r *jobRecord) time.Time {
	var success, last time.Time
	for _, p := range r.ends {
		if r.showsSuccess(p) {
			success = latest(success, p.finished)
		}
	}
	failures := 0
	for _, p := range j.pods {
		at := latest(p.finished, p.saidToEnd)
		if (p.job != r && !r.had(p)) || !p.mayHaveFailed() || r.skipsDelay(p) || !at.After(success) {
			continue
		}
		failures++
		last = latest(last, at)
	}
	return last.Add(j.mostDelay(r, failures))
}

// showsSuccess reports whether every executor sees that the pod succeeded, whenever it
// started.
func (r *jobRecord) showsSuccess(p *podRecord) bool {
	return p.succeeded() && !p.flipped && p.excuse == "" && r.live[p.uid] == p && p.pod.DeletionTimestamp == nil && r.selects(p.pod) && inRange(r.job, p.pod)
}

// mayHaveFailed reports whether the pod failed, was once reported to have done so, or was
// being deleted before it ended. An executor that saw the deletion but not the end counts
// the pod as failed.
func (p *podRecord) mayHaveFailed() bool {
	return p.failed() || p.flipped || (p.due && (p.dueBefore || !p.succeeded()))
}

// skipsDelay reports whether the pod's failure causes no delay: it is a disruption that
// the pod failure policy ignores.
func (r *jobRecord) skipsDelay(p *podRecord) bool {
	skips := func(pod *corev1.Pod) bool {
		return disrupted(pod) && policyAction(r.job, pod) == batchv1.PodFailurePolicyActionIgnore
	}
	return skips(p.version()) && skips(p.pod)
}

// looseSuccess is the last time when a pod succeeded without its finalizer and the
// executor may have noticed: when it started, or when the Job adopted the pod. Such a
// pod counts nowhere, but ends a row of failures.
func (j *judge) looseSuccess(r *jobRecord, by string) (last time.Time) {
	began := j.writer(by).began
	for _, p := range r.loose {
		found := !p.endedAt.After(began.Add(j.lag)) || (p.claimedBy != by && p.endedAt.Sub(p.claimedAt) <= j.lag)
		if found && !(p.gone && p.goneAt.Before(began)) {
			last = latest(last, p.saidToEnd)
		}
	}
	return last
}

// lost reports whether nothing in the cluster shows a failed pod's end any more, and
// the executor need not have seen it.
func (j *judge) lost(r *jobRecord, p *podRecord, by string) bool {
	if e := r.entries[p.uid]; e != nil && e.by == by {
		return false
	}
	if p.takenBefore(by, j.lag) {
		return true
	}
	if p.pruned {
		return false
	}
	mine := p.job == r && r.selects(p.pod)
	if !j.writer(by).began.After(p.dueAt) { // It was running then, and saw in time what it was shown.
		return !mine && p.strayAt.Sub(p.dueAt) <= j.lag
	}
	return p.gone || !mine || !j.old(p.strayAt) || (!holds(p.pod) && (p.first == nil || p.pod.DeletionTimestamp != nil))
}

// takenBefore reports whether somebody else took the pod's finalizer before this executor
// had to see the pod's end, and the pod shows no end any more: it is gone, or it ended
// later. To this executor such a pod may be only one that is gone.
func (p *podRecord) takenBefore(by string, lag time.Duration) bool {
	taken := !p.released.at.IsZero() && p.released.by != by && p.released.at.Sub(p.dueAt) <= lag
	return taken && (p.gone || p.endedAt.IsZero() || p.endedAt.After(p.released.at))
}

// judgeIndexDelay checks I12 for an index with its own limits: its last pod says how
// often the index has failed, and keeps its finalizer until the next pod exists.
func (j *judge) judgeIndexDelay(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	ix := podIndex(pod)
	last := r.lastFailure(ix)
	if last == nil || last.flipped || !j.shownOf(r, last, w.By) {
		return
	}
	failures, ignored := countOf(last.pod, batchv1.JobIndexFailureCountAnnotation), countOf(last.pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
	due := last.finished.Add(j.leastDelay(r, int(failures+ignored)+1))
	if now := w.Time.Add(j.askew()); !disrupted(last.version()) && !disrupted(last.pod) && now.Before(due) {
		j.breach("I12", r.key, r.uid, "%s created pod %s of index %d %s before the retry delay of the index had passed: it had failed %d times",
			w.By, w.Key.Name, ix, due.Sub(now), failures+ignored+1)
	}
	if r.fails(last) {
		failures++
	} else {
		ignored++
	}
	if limit := valueOr(r.job.Spec.BackoffLimitPerIndex, 0); r.fails(last) && failures > limit {
		j.breach("verdict", r.key, r.uid, "%s created pod %s of index %d, which has failed %d times, and it may fail %d times", w.By, w.Key.Name, ix, failures, limit)
	}
	if got, gotIgnored := countOf(pod, batchv1.JobIndexFailureCountAnnotation), countOf(pod, batchv1.JobIndexIgnoredFailureCountAnnotation); got != failures || gotIgnored != ignored {
		j.breach("I10", r.key, r.uid, "%s created pod %s of index %d with %d failures and %d ignored ones, and its predecessor leaves it %d and %d",
			w.By, w.Key.Name, ix, got, gotIgnored, failures, ignored)
	}
}

// replacedAt is when the index of a failed pod with its own limits got its next pod;
// until then nothing accounts for the failed one. It is zero if it got none. If the next
// pod is deleted soon after its creation, before a status had to tell, the failed one is
// the index's last failure again until the next one has ended.
func (r *jobRecord) replacedAt(p *podRecord, soon time.Duration) (at time.Time) {
	if !perIndex(r.job) {
		return time.Time{}
	}
	replaces := func(other *podRecord) {
		if other == p || podIndex(other.pod) != podIndex(p.pod) || !other.created.After(p.dueAt) {
			return
		}
		since := other.created
		if !other.deletedAt.IsZero() && other.deletedAt.Sub(other.created) <= soon {
			since = latest(since, other.dueAt)
		}
		if at.IsZero() || since.Before(at) {
			at = since
		}
	}
	for _, other := range r.live {
		replaces(other)
	}
	for _, other := range r.ends {
		replaces(other)
	}
	return at
}

// lastFailure is the failed pod that the next pod of an index replaces: of those that
// still hold their finalizer, one that the status has not recorded, if there is one, and the
// one that carries the most failures. Two active executors may leave several of these; then
// it is the one that finished last, by the times of their statuses, which are whole seconds.
// It is nil if there is none. It is also nil if the answer depends on which times of a pod an
// executor has seen: if the only time that a pod has is that of its deletion, a second
// deletion moves it.
func (r *jobRecord) lastFailure(ix int32) *podRecord {
	last := r.lastFailureBy(ix, func(p *podRecord) time.Time { return p.finished })
	if last != r.lastFailureBy(ix, func(p *podRecord) time.Time { return p.saidToEnd }) {
		return nil
	}
	return last
}

// lastFailureBy is lastFailure with ended as the end time of a pod.
func (r *jobRecord) lastFailureBy(ix int32, ended func(*podRecord) time.Time) (last *podRecord) {
	recorded := uncounted(&r.job.Status)
	for _, p := range r.ends {
		if podIndex(p.pod) != ix || p.succeeded() || p.gone || !holds(p.pod) || !r.selects(p.pod) || r.live[p.uid] == nil {
			continue
		}
		if last == nil || cmp.Or(unrecordedFirst(recorded, p, last), laterFailure(p, last, ended)) > 0 {
			last = p
		}
	}
	return last
}

// unrecordedFirst is above 0 if only b is recorded, and below 0 if only a is.
func unrecordedFirst(recorded map[types.UID]outcome, a, b *podRecord) int {
	rank := func(p *podRecord) int {
		if recorded[p.uid] == "" {
			return 1
		}
		return 0
	}
	return cmp.Compare(rank(a), rank(b))
}

func laterFailure(a, b *podRecord, ended func(*podRecord) time.Time) int {
	return cmp.Or(
		cmp.Compare(failuresBefore(a), failuresBefore(b)),
		ended(a).Truncate(time.Second).Compare(ended(b).Truncate(time.Second)),
		cmp.Compare(a.uid, b.uid),
	)
}

// failuresBefore is how many pods of its index failed before this one.
func failuresBefore(p *podRecord) int32 {
	return countOf(p.pod, batchv1.JobIndexFailureCountAnnotation) + countOf(p.pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
}

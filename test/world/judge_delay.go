package world

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/world/apiserver"
)

// The retry delay, upstream's: the first after one failure, doubled with each
// further one in a row, up to the longest.
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

// judgeDelay holds I12 (and I10: all it takes is in the cluster): failed pods are
// replaced no faster than the retry delay allows. slack is how many pods more the
// Job would take: so many ends the executor need not have seen.
func (j *judge) judgeDelay(w apiserver.Write, r *jobRecord, pod *corev1.Pod, slack int) {
	if r.looseSuccess || j.bothActive(w.By) {
		return // What one has seen to fail, the other may still count as running.
	}
	if perIndex(r.job) {
		j.judgeIndexDelay(w, r, pod)
		return
	}
	now := w.Time.Add(j.askew())
	ends := r.delaying(func(p *podRecord) bool { return !j.lost(p, w.By) })
	seen := max(0, len(ends)-max(0, slack))
	for i, p := range ends {
		if j.old(p.dueAt) || r.entries[p.uid] != nil {
			seen = max(seen, i+1)
		}
	}
	var due time.Time
	var failures int
	for n := seen; n <= len(ends); n++ {
		count, last := inARow(ends[:n])
		at := last.Add(j.delayAfter(count))
		if count == 0 || !now.Before(at) {
			return
		}
		if n == seen || at.Before(due) {
			due, failures = at, count
		}
	}
	j.breach("I12", r.key, r.uid, "%s created pod %s %s before the retry delay had passed: %d pods had failed in a row, and the next one may come %s after the last",
		w.By, w.Key.Name, due.Sub(now), failures, j.delayAfter(failures))
}

// delaying are the ends of pods that say something about when to try again. That a
// pod failed that was not the Job's for a while need not be known.
func (r *jobRecord) delaying(known func(*podRecord) bool) (ends []*podRecord) {
	for _, p := range r.ends {
		if p.flipped {
			return nil // Which of its ends counts is anybody's guess.
		}
		if inRange(r.job, p.pod) && (p.strayAt.IsZero() || p.succeeded()) && known(p) {
			ends = append(ends, p)
		}
	}
	return ends
}

// inARow counts the failures after the last success, and says when the last of
// them was. Disruptions are no reason to wait.
func inARow(ends []*podRecord) (failures int, last time.Time) {
	var success time.Time
	for _, p := range ends {
		if at := finishTime(p.version()); p.succeeded() && at.After(success) {
			success = at
		}
	}
	for _, p := range ends {
		if p.succeeded() || disrupted(p.version()) || disrupted(p.pod) {
			continue
		}
		at := p.finished
		if !at.After(success) {
			continue
		}
		failures++
		if at.After(last) {
			last = at
		}
	}
	return failures, last
}

// lost reports whether nothing in the cluster tells an executor of a pod's end
// any more, and it need not have seen it.
func (j *judge) lost(p *podRecord, by string) bool {
	if !j.writer(by).first.After(p.dueAt) {
		return false
	}
	return p.gone || (!holds(p.pod) && (p.first == nil || p.pod.DeletionTimestamp != nil))
}

// judgeIndexDelay holds I12 for an index with limits of its own: its last pod says
// how often the index has failed, and keeps its finalizer until the next one is
// there.
func (j *judge) judgeIndexDelay(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	ix := podIndex(pod)
	at := slices.IndexFunc(r.ends, func(p *podRecord) bool { return p.flipped })
	last := r.lastFailure(ix)
	if at >= 0 || last == nil || !j.shown(last, w.By) {
		return
	}
	failures, ignored := countOf(last.pod, batchv1.JobIndexFailureCountAnnotation), countOf(last.pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
	due := last.finished.Add(j.delayAfter(int(failures+ignored) + 1))
	if now := w.Time.Add(j.askew()); !disrupted(last.version()) && !disrupted(last.pod) && now.Before(due) {
		j.breach("I12", r.key, r.uid, "%s created pod %s of index %d %s before the retry delay of the index had passed: it had failed %d times",
			w.By, w.Key.Name, ix, due.Sub(now), failures+ignored+1)
	}
	if r.fails(last) {
		failures++
	} else {
		ignored++
	}
	if got, gotIgnored := countOf(pod, batchv1.JobIndexFailureCountAnnotation), countOf(pod, batchv1.JobIndexIgnoredFailureCountAnnotation); got != failures || gotIgnored != ignored {
		j.breach("I10", r.key, r.uid, "%s created pod %s of index %d with %d failures and %d ignored ones, and its predecessor leaves it %d and %d",
			w.By, w.Key.Name, ix, got, gotIgnored, failures, ignored)
	}
}

// lastFailure is the pod of an index that failed last and still holds its
// finalizer; nil if there is none.
func (r *jobRecord) lastFailure(ix int32) *podRecord {
	for i := len(r.ends) - 1; i >= 0; i-- {
		p := r.ends[i]
		if podIndex(p.pod) == ix && !p.succeeded() && !p.gone && holds(p.pod) && r.selects(p.pod) && r.live[p.uid] != nil {
			return p
		}
	}
	return nil
}

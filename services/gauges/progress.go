package gauges

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A watcher finds Jobs that make no progress: they want pods, none of their pods is ready, and none
// ends. It remembers when it saw the last progress.
type watcher struct {
	mu   sync.Mutex
	seen map[types.UID]progress
}

// progress is what was counted of a Job's pods, since a time.
type progress struct {
	ready, succeeded, failed int32
	since                    time.Time
}

// longest is how long the Job that has made no progress for longest has made none. It looks at each of the
// Jobs, and forgets all others.
func (w *watcher) longest(jobs []executor.Observation, now time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[types.UID]progress, len(jobs))
	for _, o := range jobs {
		p := w.progress(o, now)
		seen[o.Job.UID] = p
		longest = max(longest, now.Sub(p.since))
	}
	w.seen = seen
	return longest
}

// progress is the progress of a Job until now. Of a Job whose pods have ended before it was seen first,
// nobody knows when: it is taken to have made progress now.
func (w *watcher) progress(o executor.Observation, now time.Time) progress {
	s := &o.Job.Status
	p := progress{ready: ptr.Deref(s.Ready, 0), succeeded: s.Succeeded, failed: s.Failed, since: now}
	if !wantsProgress(o) {
		return p
	}
	before, known := w.seen[o.Job.UID]
	switch {
	case known && before.ready == p.ready && before.succeeded == p.succeeded && before.failed == p.failed:
		// It may have been suspended and resumed since then.
		if p.since = before.since; startOf(o.Job).After(p.since) {
			p.since = startOf(o.Job)
		}
	case !known && s.Succeeded == 0 && s.Failed == 0:
		p.since = startOf(o.Job)
	}
	if p.since.After(now) {
		p.since = now
	}
	return p
}

// startOf is when a Job started or resumed. Of one that has not started it is when it was suspended last, if it was, and else
// when it was created.
func startOf(job *batchv1.Job) time.Time {
	if job.Status.StartTime != nil {
		return job.Status.StartTime.Time
	}
	since := job.CreationTimestamp.Time
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobSuspended && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// wantsProgress reports whether the Job is to run pods now, and none is ready. A Job with a verdict wants none: it waits for
// pods to end. One that waits for its retry delay, or whose pods a queue holds by scheduling gates, is as it should be.
func wantsProgress(o executor.Observation) bool {
	spec := &o.Job.Spec
	if wire.FinishedCondition(o.Job) != nil || decided(o.Job) || o.Job.DeletionTimestamp != nil || ptr.Deref(spec.Suspend, false) ||
		ptr.Deref(spec.Parallelism, 1) == 0 || ptr.Deref(o.Job.Status.Ready, 0) > 0 || o.Hindered.Reason == "SchedulingGated" {
		return false
	}
	for _, wait := range o.Decision.Explained().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF {
			return false
		}
	}
	return true
}

// lastRetry reports whether pods of the Job have failed, and one more fails the Job, which has no verdict yet.
func lastRetry(o executor.Observation) bool {
	facts := o.Decision.Explained().GetFacts()
	return !decided(o.Job) && facts.GetFailed() > 0 && facts.GetRetriesLeft() == 0
}

// decided reports whether the Job has a verdict and waits for its pods to end.
func decided(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobSuccessCriteriaMet)
	})
}

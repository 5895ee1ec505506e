package executor

import (
	"context"
	"log/slog"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// An announcement is what a status write makes true, and what is told of it: in
// metrics, in the log, in events. It is told exactly once, when the write is known
// to have taken effect. If the write got no answer, the next version of the Job
// tells whether it has.
type announcement struct {
	job     *batchv1.Job // The version that the write replaces.
	status  batchv1.JobStatus
	events  []*jobpolicyv1.JobEvent
	actions []*jobpolicyv1.PodFailureActionCount
}

// written is the Job as the write makes it.
func (a *announcement) written() *batchv1.Job {
	job := a.job.DeepCopy()
	job.Status = a.status
	return job
}

// tookEffect reports whether a version of the Job that came after the replaced one
// came from this write. Others may have changed the status since: the conditions
// that the write has set bear its time, and nobody takes them away. Of a write
// without any, the ledger tells.
func (a *announcement) tookEffect(job *batchv1.Job) bool {
	set := 0
	for i := range a.status.Conditions {
		c := a.status.Conditions[i]
		if !wire.DecidedByEngine(c.Type) || hasCondition(&a.job.Status, c) {
			continue
		}
		if !hasCondition(&job.Status, c) {
			return false
		}
		set++
	}
	return set > 0 || (!sameLedger(&a.status, &a.job.Status) && sameLedger(&a.status, &job.Status))
}

func hasCondition(status *batchv1.JobStatus, wanted batchv1.JobCondition) bool {
	return slices.ContainsFunc(status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == wanted.Type && c.Status == wanted.Status && c.Reason == wanted.Reason && c.Message == wanted.Message &&
			c.LastTransitionTime.Equal(&wanted.LastTransitionTime)
	})
}

// countWritten tells a status write to metrics and log.
func (e *Executor) countWritten(ctx context.Context, a *announcement) {
	after := *a.job
	after.Status = a.status
	job := &after
	e.metrics.statusWritten(a.job, job)
	if c := wire.FinishedCondition(job); c != nil {
		e.log.InfoContext(ctx, "job finished", append(telemetry.JobAttrs(job), slog.String("result", string(c.Type)), slog.String("reason", c.Reason))...)
	}
}

func (e *Executor) countActions(actions []*jobpolicyv1.PodFailureActionCount) {
	for _, a := range actions {
		e.metrics.failurePolicy.WithLabelValues(wire.ActionName(a.GetAction())).Add(float64(a.GetCount()))
	}
}

// settleUnanswered announces a status write that got no answer, if the newest
// version of the Job shows that it took effect. While the Job is as it was before
// the write, it may still do so.
func (e *Executor) settleUnanswered(ctx context.Context, s *jobState) {
	s.mu.Lock()
	job := s.job
	if job == nil {
		job = s.final
	}
	s.mu.Unlock()
	if job != nil {
		e.settleBy(ctx, s, job)
	}
}

// settleBy is settleUnanswered by a certain version of the Job.
func (e *Executor) settleBy(ctx context.Context, s *jobState, job *batchv1.Job) {
	a := s.takeUnanswered(job)
	if a == nil {
		return
	}
	e.countWritten(ctx, a)
	e.countActions(a.actions)
	e.recordEvents(a.job, a.events)
}

// takeUnanswered returns the unanswered write that led to a version of the Job, if
// one did. Of several that wanted to replace the same version, at most one took
// effect, and none of them does any more once that version is replaced.
func (s *jobState) takeUnanswered(job *batchv1.Job) *announcement {
	s.mu.Lock()
	defer s.mu.Unlock()
	var effective *announcement
	s.unanswered = slices.DeleteFunc(s.unanswered, func(a *announcement) bool {
		if tracker.ResourceVersion(job.ResourceVersion) <= tracker.ResourceVersion(a.job.ResourceVersion) {
			return false
		}
		if a.tookEffect(job) && s.tellLocked(a) {
			effective = a
		}
		return true
	})
	return effective
}

// tell reports whether the write has not been announced yet, and takes in that it
// is.
func (s *jobState) tell(a *announcement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tellLocked(a)
}

// tellLocked is tell for who holds s.mu. A version of the Job is replaced once.
func (s *jobState) tellLocked(a *announcement) bool {
	base := tracker.ResourceVersion(a.job.ResourceVersion)
	if base != 0 && base == s.told {
		return false
	}
	s.told = base
	return true
}

// answerMissing remembers a write until it is known what became of it.
func (s *jobState) answerMissing(a *announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = append(s.unanswered, a)
}

// answered takes in that a write has replaced a version: unanswered ones that
// wanted to replace it never take effect.
func (s *jobState) answered(a *announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = slices.DeleteFunc(s.unanswered, func(other *announcement) bool {
		return other.job.ResourceVersion == a.job.ResourceVersion
	})
}

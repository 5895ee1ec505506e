package cronjob

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// runs hold what is known of the CronJob's runs from its Jobs and its status.
type runs struct {
	// active are the unfinished runs, those in status.active first, in its order.
	active []*jobpolicyv1.OwnedJob
	// lastScheduled is the scheduled time of the last run that was started, as recorded
	// in the status or in a Job.
	lastScheduled *timestamppb.Timestamp
	// lastSuccess is when a Job of the CronJob last completed.
	lastSuccess *timestamppb.Timestamp
	// failures are the failed runs since the last success that count, the oldest first.
	failures []*jobpolicyv1.OwnedJob
	events   []*jobpolicyv1.JobEvent
}

// unknownActive reports whether status.active lists a Job about which the request
// says nothing.
func unknownActive(s *snapshot) bool {
	known := make(map[string]bool, len(s.jobs)+len(s.req.GetAbsentJobs()))
	for _, job := range s.jobs {
		known[string(job.GetUid())] = true
	}
	for _, uid := range s.req.GetAbsentJobs() {
		known[string(uid)] = true
	}
	return slices.ContainsFunc(s.status.GetActive(), func(a *jobpolicyv1.ActiveJob) bool { return !known[string(a.GetUid())] })
}

// takeRuns collects the runs from the Jobs. The list of active runs is rebuilt each
// time: an entry of status.active counts only if its Job exists and is unfinished.
func takeRuns(s *snapshot) runs {
	r := runs{lastScheduled: s.lastRun(s.status.GetLastScheduleTime(), s.now), lastSuccess: s.status.GetLastSuccessfulTime()}
	place := make(map[string]int, len(s.status.GetActive()))
	for i, a := range s.status.GetActive() {
		if _, twice := place[string(a.GetUid())]; !twice {
			place[string(a.GetUid())] = i
		}
	}
	for _, job := range s.jobs {
		_, listed := place[string(job.GetUid())]
		if !s.early(job) {
			r.lastScheduled = later(r.lastScheduled, wholeSeconds(job.GetScheduledTime()))
		}
		switch {
		case job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE:
			r.lastSuccess = later(r.lastSuccess, wholeSeconds(job.GetCompletionTime()))
		case job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED:
		case isRun(job) || listed:
			r.active = append(r.active, job)
		case job.GetStartTime() == nil || s.isRecent(job.GetStartTime().AsTime()):
			r.events = append(r.events, warning(eventUnexpectedJob, "Saw a job that the controller did not create or forgot: %s", job.GetName()))
		}
	}
	r.reportEnded(s, place)
	slices.SortStableFunc(r.active, func(a, b *jobpolicyv1.OwnedJob) int { return compareActive(place, a, b) })
	r.countFailures(s)
	return r
}

// early reports whether the Job's scheduled time is in the future: the clock was
// ahead when the Job was created, or someone wrote the annotation. Until then the Job
// says nothing about the schedule.
func (s *snapshot) early(job *jobpolicyv1.OwnedJob) bool {
	return job.GetScheduledTime() != nil && job.GetScheduledTime().AsTime().After(s.now)
}

// isRun reports whether a Job is a run of the CronJob, and not one that someone
// created from its template.
func isRun(job *jobpolicyv1.OwnedJob) bool {
	return job.GetScheduledTime() != nil || job.GetRunNow() != ""
}

// compareActive keeps the order of status.active. New runs follow in order of their
// scheduled times.
func compareActive(place map[string]int, a, b *jobpolicyv1.OwnedJob) int {
	i, oldA := place[string(a.GetUid())]
	j, oldB := place[string(b.GetUid())]
	switch {
	case oldA && oldB:
		return i - j
	case oldA != oldB && oldA:
		return -1
	case oldA != oldB:
		return 1
	}
	return a.GetScheduledTime().AsTime().Compare(b.GetScheduledTime().AsTime())
}

// reportEnded adds events for the entries that are removed from status.active.
func (r *runs) reportEnded(s *snapshot, place map[string]int) {
	rows := make(map[string]*jobpolicyv1.OwnedJob, len(s.jobs))
	for _, job := range s.jobs {
		rows[string(job.GetUid())] = job
	}
	replaced := r.replaced(s, place)
	for i, a := range s.status.GetActive() {
		job := rows[string(a.GetUid())]
		switch {
		case place[string(a.GetUid())] != i: // a second entry of the same Job
		case job == nil && replaced:
		case job == nil:
			r.events = append(r.events, normal(eventMissingJob, "Active job went missing: %s", a.GetName()))
		case job.GetOutcome() != jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE:
			r.events = append(r.events, normal(eventSawCompletedJob, "Saw completed job: %s, condition: %s", job.GetName(), condition(job)))
		}
	}
}

// replaced reports whether Jobs were deleted to make room for a run, and no status has
// been written since: the run was started, or its creation failed and was deferred. Then the
// deleted Jobs are not missing.
func (r *runs) replaced(s *snapshot, place map[string]int) bool {
	if s.spec.GetConcurrencyPolicy() != jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE {
		return false
	}
	_, _, deferred := s.manualDeferredUntil()
	return deferred || slices.ContainsFunc(r.active, func(job *jobpolicyv1.OwnedJob) bool {
		_, listed := place[string(job.GetUid())]
		return !listed
	})
}

// condition is the type of the condition that a finished Job has.
func condition(job *jobpolicyv1.OwnedJob) string {
	if job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE {
		return "Complete"
	}
	return "Failed"
}

// countFailures lists the failed runs that count for suspend_after_failures. The Jobs
// of earlier successes may be deleted, but the status has the time of the last
// success.
func (r *runs) countFailures(s *snapshot) {
	var since time.Time
	if until := s.spec.GetFailuresCountedUntil(); until != nil {
		since = until.AsTime()
	}
	if r.lastSuccess != nil && r.lastSuccess.AsTime().After(since) {
		since = r.lastSuccess.AsTime()
	}
	for _, job := range s.jobs {
		failed := job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED && job.GetFinishTime() != nil
		if failed && isRun(job) && job.GetFinishTime().AsTime().After(since) {
			r.failures = append(r.failures, job)
		}
	}
	slices.SortStableFunc(r.failures, func(a, b *jobpolicyv1.OwnedJob) int {
		return a.GetFinishTime().AsTime().Compare(b.GetFinishTime().AsTime())
	})
}

// lastFailure is the time of the last failure that counts.
func (r *runs) lastFailure() time.Time { return r.failures[len(r.failures)-1].GetFinishTime().AsTime() }

// named finds the Job with a name.
func (s *snapshot) named(name string) (*jobpolicyv1.OwnedJob, bool) {
	i, found := slices.BinarySearchFunc(s.jobs, name, func(job *jobpolicyv1.OwnedJob, name string) int {
		return strings.Compare(job.GetName(), name)
	})
	if !found {
		return nil, false
	}
	return s.jobs[i], true
}

// nextStatus is the status that follows from the Jobs. Fields that may be ignored stay as
// they are in the last status.
func (r *runs) nextStatus(last *jobpolicyv1.CronJobStatus) *jobpolicyv1.CronJobStatus {
	entries := make(map[string]*jobpolicyv1.ActiveJob, len(last.GetActive()))
	for _, a := range last.GetActive() {
		entries[string(a.GetUid())] = a
	}
	next := &jobpolicyv1.CronJobStatus{
		LastScheduleTime:   proto.CloneOf(r.lastScheduled),
		LastSuccessfulTime: proto.CloneOf(r.lastSuccess),
	}
	for _, job := range r.active {
		entry := &jobpolicyv1.ActiveJob{Uid: job.GetUid(), Name: job.GetName()}
		keepUnknown(entry, entries[string(job.GetUid())])
		next.Active = append(next.Active, entry)
	}
	keepUnknown(next, last)
	return next
}

// keepUnknown copies the unknown fields of the last message, which may be nil.
func keepUnknown[M proto.Message](next, last M) {
	if unknown := last.ProtoReflect().GetUnknown(); len(unknown) > 0 {
		next.ProtoReflect().SetUnknown(bytes.Clone(unknown))
	}
}

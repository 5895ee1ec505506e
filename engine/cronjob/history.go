package cronjob

import (
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxListedKept is how many Jobs an explanation says why they are kept.
const maxListedKept = 100

// A history says which Jobs go by the history limits, and why the others stay.
type history struct {
	deletes []*jobpolicyv1.OwnedJob
	// kept is why, by UID, for the finished Jobs.
	kept   map[string]string
	events []*jobpolicyv1.JobEvent
}

// takeHistory applies the history limits, each to its own kind of finished Jobs,
// whoever made them: the oldest go first (upstream removeOldestJobs, v1.36).
// Failed runs that count for suspend_after_failures stay, up to as many as are
// counted. So do runs that were started before their time, because the clock was
// ahead: but for their Jobs, they would start once more.
func takeHistory(s *snapshot, r runs) history {
	h := history{kept: map[string]string{}}
	counted := make(map[string]bool)
	for _, job := range r.failures[max(0, len(r.failures)-s.opts.suspendAfter):] {
		counted[string(job.GetUid())] = true
	}
	h.limit(s, "successfulJobsHistoryLimit", jobpolicyv1.JobOutcome_JOB_OUTCOME_COMPLETE, s.spec.SuccessfulJobsHistoryLimit, nil)
	h.limit(s, "failedJobsHistoryLimit", jobpolicyv1.JobOutcome_JOB_OUTCOME_FAILED, s.spec.FailedJobsHistoryLimit, counted)
	if s.spec.GetDeleting() {
		h.deletes = nil
	}
	return h
}

func (h *history) limit(s *snapshot, field string, outcome jobpolicyv1.JobOutcome, limit *int32, counted map[string]bool) {
	finished := slices.DeleteFunc(notDeleting(s.jobs), func(job *jobpolicyv1.OwnedJob) bool { return job.GetOutcome() != outcome })
	slices.SortStableFunc(finished, byStart)
	if limit == nil {
		h.keep(finished, "%s is not set", field)
		return
	}
	if *limit < 0 {
		h.events = append(h.events, warning(eventInvalidSpec, "spec.%s must not be negative, is %d: nothing is deleted by it", field, *limit))
		h.keep(finished, "%s is %d, which makes no sense", field, *limit)
		return
	}
	over := max(0, len(finished)-int(*limit))
	for _, job := range finished[:over] {
		if counted[string(job.GetUid())] {
			h.keep([]*jobpolicyv1.OwnedJob{job}, "it counts for %s", annotationSuspendAfter)
			continue
		}
		if s.early(job) && s.isScheduled(job) {
			h.keep([]*jobpolicyv1.OwnedJob{job}, "its scheduled time is yet to come")
			continue
		}
		h.deletes = append(h.deletes, job)
	}
	h.keep(finished[over:], "one of the newest %d (%s)", *limit, field)
}

// isScheduled tells a run of the schedule, which is known by its name, from a Job
// that somebody annotated.
func (s *snapshot) isScheduled(job *jobpolicyv1.OwnedJob) bool {
	return job.GetScheduledTime() != nil && job.GetName() == s.scheduledName(job.GetScheduledTime().AsTime())
}

func (h *history) keep(jobs []*jobpolicyv1.OwnedJob, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	for _, job := range jobs {
		h.kept[string(job.GetUid())] = why
	}
}

// byStart orders Jobs by when they started; those that did not come last.
func byStart(a, b *jobpolicyv1.OwnedJob) int {
	switch {
	case a.GetStartTime() == nil && b.GetStartTime() == nil:
		return 0
	case a.GetStartTime() == nil:
		return 1
	case b.GetStartTime() == nil:
		return -1
	}
	return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
}

func notDeleting(jobs []*jobpolicyv1.OwnedJob) []*jobpolicyv1.OwnedJob {
	return slices.DeleteFunc(slices.Clone(jobs), (*jobpolicyv1.OwnedJob).GetDeleting)
}

// explainKept says of every Job that is not deleted why it is kept, as far as the
// list goes.
func explainKept(s *snapshot, r runs, h history, deleted []*jobpolicyv1.DeleteJob) []*jobpolicyv1.KeptJob {
	gone := make(map[string]bool, len(deleted))
	for _, d := range deleted {
		gone[string(d.GetUid())] = true
	}
	active := make(map[string]bool, len(r.active))
	for _, job := range r.active {
		active[string(job.GetUid())] = true
	}
	var kept []*jobpolicyv1.KeptJob
	for _, job := range s.jobs {
		if gone[string(job.GetUid())] {
			continue
		}
		if len(kept) == maxListedKept {
			break
		}
		kept = append(kept, &jobpolicyv1.KeptJob{Name: job.GetName(), Reason: keptReason(s, h, active, job)})
	}
	return kept
}

func keptReason(s *snapshot, h history, active map[string]bool, job *jobpolicyv1.OwnedJob) string {
	switch why, finished := h.kept[string(job.GetUid())]; {
	case job.GetDeleting():
		return "it is being deleted already"
	case active[string(job.GetUid())]:
		return "its run has not ended; history limits concern finished Jobs"
	case finished:
		return why
	case job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE:
		return "it has not ended, and is no run of the schedule"
	case s.spec.GetDeleting():
		return "the CronJob is being deleted"
	}
	return "it goes in a later step"
}

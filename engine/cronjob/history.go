package cronjob

import (
	"fmt"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxListedKept is how many kept Jobs an explanation lists.
const maxListedKept = 100

// A history says which Jobs the history limits delete, and why the others are kept.
type history struct {
	deletes []*jobpolicyv1.OwnedJob
	// kept holds, by UID, why a finished Job is kept.
	kept   map[string]kept
	events []*jobpolicyv1.JobEvent
}

// A kept is the reason why a Job is kept, as a value and as text.
type kept struct {
	reason jobpolicyv1.KeepReason
	detail string
}

// takeHistory applies the history limits, each to its own kind of finished Jobs,
// whoever created them. The oldest are deleted first (upstream removeOldestJobs,
// v1.37). Failed runs that count for suspend_after_failures are kept, as many as that
// option counts; all of them if it is not known whether there is such an option. Runs that were started before their time, because the clock was
// ahead, are kept too: without their Jobs they would start again.
func takeHistory(s *snapshot, r runs) history {
	h := history{kept: map[string]kept{}}
	counted := make(map[string]bool)
	counts := int(s.options.GetSuspendAfterFailures())
	if s.optionsLost() {
		counts = len(r.failures)
	}
	for _, job := range r.failures[max(0, len(r.failures)-counts):] {
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
		h.keep(jobpolicyv1.KeepReason_KEEP_REASON_NO_LIMIT, finished, "%s is not set", field)
		return
	}
	if *limit < 0 {
		h.events = append(h.events, warning(eventInvalidSpec, "spec.%s must not be negative, is %d: nothing is deleted by it", field, *limit))
		h.keep(jobpolicyv1.KeepReason_KEEP_REASON_NO_LIMIT, finished, "%s is %d, which makes no sense", field, *limit)
		return
	}
	over, counts := max(0, len(finished)-int(*limit)), "counts"
	if s.optionsLost() {
		counts = "may count"
	}
	for _, job := range finished[:over] {
		if counted[string(job.GetUid())] {
			h.keep(jobpolicyv1.KeepReason_KEEP_REASON_COUNTED_FAILURE, []*jobpolicyv1.OwnedJob{job}, "it %s for cronJob.suspendAfterFailures", counts)
			continue
		}
		if s.early(job) && s.isScheduled(job) {
			h.keep(jobpolicyv1.KeepReason_KEEP_REASON_EARLY, []*jobpolicyv1.OwnedJob{job}, "its scheduled time is yet to come")
			continue
		}
		h.deletes = append(h.deletes, job)
	}
	h.keep(jobpolicyv1.KeepReason_KEEP_REASON_WITHIN_LIMIT, finished[over:], "one of the newest %d (%s)", *limit, field)
}

// isScheduled reports whether a Job is a run of the schedule, by its name, and not
// just a Job to which someone added the annotation.
func (s *snapshot) isScheduled(job *jobpolicyv1.OwnedJob) bool {
	return job.GetScheduledTime() != nil && job.GetName() == s.scheduledName(job.GetScheduledTime().AsTime())
}

func (h *history) keep(reason jobpolicyv1.KeepReason, jobs []*jobpolicyv1.OwnedJob, format string, args ...any) {
	why := kept{reason, fmt.Sprintf(format, args...)}
	for _, job := range jobs {
		h.kept[string(job.GetUid())] = why
	}
}

// byStart orders Jobs by their start time; Jobs that have not started come last.
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

// explainKept says why each Job that is not deleted is kept, up to the limit of the
// list.
func explainKept(s *snapshot, r runs, h history, deleted []*jobpolicyv1.DeleteJob) []*jobpolicyv1.KeptJob {
	gone := make(map[string]bool, len(deleted))
	for _, d := range deleted {
		gone[string(d.GetUid())] = true
	}
	active := make(map[string]bool, len(r.active))
	for _, job := range r.active {
		active[string(job.GetUid())] = true
	}
	var list []*jobpolicyv1.KeptJob
	for _, job := range s.jobs {
		if gone[string(job.GetUid())] {
			continue
		}
		if len(list) == maxListedKept {
			break
		}
		why := whyKept(s, h, active, job)
		list = append(list, &jobpolicyv1.KeptJob{Name: job.GetName(), Reason: why.reason, Detail: why.detail})
	}
	return list
}

func whyKept(s *snapshot, h history, active map[string]bool, job *jobpolicyv1.OwnedJob) kept {
	switch why, finished := h.kept[string(job.GetUid())]; {
	case job.GetDeleting():
		return kept{jobpolicyv1.KeepReason_KEEP_REASON_DELETING, "it is being deleted already"}
	case active[string(job.GetUid())]:
		return kept{jobpolicyv1.KeepReason_KEEP_REASON_ACTIVE_RUN, "its run has not ended; history limits concern finished Jobs"}
	case finished:
		return why
	case job.GetOutcome() == jobpolicyv1.JobOutcome_JOB_OUTCOME_ACTIVE:
		return kept{jobpolicyv1.KeepReason_KEEP_REASON_ACTIVE_JOB, "it has not ended, and is no run of the schedule"}
	case s.spec.GetDeleting():
		return kept{jobpolicyv1.KeepReason_KEEP_REASON_CRON_JOB_DELETING, "the CronJob is being deleted"}
	}
	return kept{jobpolicyv1.KeepReason_KEEP_REASON_LATER, "it goes in a later step"}
}

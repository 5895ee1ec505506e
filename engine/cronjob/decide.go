package cronjob

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/check"
	"jobpolicy.dev/engine/internal/rules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Decide decides what to do about one CronJob. It reads only req, does not change it,
// and gives the same answer to the same request.
//
// Errors are *engine.InvalidRequestError, for a request that breaks the contract,
// and *engine.UnsupportedError, for one with fields or values that this engine
// does not know. A schedule that makes no sense is never an error.
func Decide(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	if err := check.Request(req, func(c *check.Checker) { checker{c}.decideCronJob(req) }); err != nil {
		return nil, err
	}
	resp := decide(newSnapshot(req))
	resp.RequestId = req.GetRequestId()
	resp.Explanation.Generation = req.GetCronJob().GetGeneration()
	resp.Explanation = trimExplanation(resp.GetExplanation(), req.GetExplain())
	return resp, nil
}

func decide(s *snapshot) *jobpolicyv1.DecideCronJobResponse {
	if unknownActive(s) {
		return &jobpolicyv1.DecideCronJobResponse{
			Disposition:  jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE,
			Requirements: []jobpolicyv1.Requirement{jobpolicyv1.Requirement_REQUIREMENT_ABSENT_JOBS},
			Explanation:  &jobpolicyv1.CronJobExplanation{Summary: "Jobs in status.active have to be looked up: they may be gone"},
		}
	}
	f := facts{snapshot: s, runs: takeRuns(s)}
	if s.schedule != nil {
		f.due = takeDue(s, f.runs)
	}
	return assemble(f, rules.Ask(startRules(), f), takeHistory(s, f.runs))
}

// assemble builds the decision: the first kind of step that is due.
func assemble(f facts, answers []asked, h history) *jobpolicyv1.DecideCronJobResponse {
	last := answers[len(answers)-1].Answer
	resp := &jobpolicyv1.DecideCronJobResponse{
		Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, FollowUp: jobpolicyv1.FollowUp_FOLLOW_UP_AT_ONCE,
	}
	resp.GroupClaim = f.groupClaim(answers[len(answers)-1].Rule, last)
	status := nextStatus(f, last)
	edits := combinedEdits(f, answers)
	switch {
	case last.start != nil && !onlyJobsKnow(f, last):
		resp.Delete = deletions(last.replaces, jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_REPLACED)
		resp.Create, resp.Edits = last.start.message(), last.edits
		resp.Events = append(deletionEvents(resp.Delete), normal(eventSuccessfulCreate, "Created job %s", resp.Create.GetName()))
	case !proto.Equal(status, f.status):
		resp.Status, resp.Events = status, f.runs.events
	case edits != nil:
		resp.Edits = edits
	case len(h.deletes) > 0:
		resp.Delete = deletions(h.deletes, jobpolicyv1.DeleteJobReason_DELETE_JOB_REASON_HISTORY_LIMIT)
		resp.Events = deletionEvents(resp.Delete)
	default:
		resp.Disposition, resp.Events = jobpolicyv1.Disposition_DISPOSITION_SETTLED, f.runs.events
		resp.FollowUp = jobpolicyv1.FollowUp_FOLLOW_UP_UNSPECIFIED
	}
	if resp.Status == nil { // after a status, the next decision follows at once and reports these
		resp.Events = append(resp.Events, furtherEvents(f, answers, h, resp.Edits != nil)...)
	}
	waiting := waitsOf(f, answers)
	resp.Explanation = explain(f, answers, h, waiting, resp)
	resp.RequeueTime = waiting.RequeueTime(f.now)
	return resp
}

// onlyJobsKnow reports whether the decision deletes Jobs to replace them while the status
// lacks the scheduled time of the last run. The status is then written first, because these
// Jobs may be the only record of that time.
func onlyJobsKnow(f facts, last answer) bool {
	return len(last.replaces) > 0 && !proto.Equal(f.runs.lastScheduled, f.status.GetLastScheduleTime())
}

// furtherEvents are the events of the rules, and those about invalid fields and
// options. The events of a rule that edits the CronJob come with the edits.
func furtherEvents(f facts, answers []asked, h history, edited bool) []*jobpolicyv1.JobEvent {
	var events []*jobpolicyv1.JobEvent
	for _, a := range answers {
		if a.Answer.edits == nil || edited {
			events = append(events, a.Answer.events...)
		}
	}
	events = append(events, h.events...)
	if seconds := f.spec.GetStartingDeadlineSeconds(); seconds < 0 {
		events = append(events, warning(eventInvalidSpec, "spec.startingDeadlineSeconds must not be negative, is %d: it is read as 0", seconds))
	}
	for _, text := range f.spec.GetOptionProblems() {
		events = append(events, warning(eventInvalidPolicy, "%s", text))
	}
	return events
}

// nextStatus is the status that follows from the Jobs. If alreadyStarted found the
// Job of the due run, that run is the last one.
func nextStatus(f facts, last answer) *jobpolicyv1.CronJobStatus {
	next := f.runs.nextStatus(f.status)
	if last.processed {
		next.LastScheduleTime = later(next.LastScheduleTime, timestamppb.New(f.due.at))
	}
	next.NextScheduleTime = f.publishedNext(next.GetLastScheduleTime())
	return next
}

// publishedNext is when the next run is due, if the options ask to publish it. While the latest run that is due waits for its
// delay, that is its time: so the status that lists the run is the only one that changes it. It is after last, the last
// scheduled time: with a schedule of several runs a minute, the run that waits may count as started already, by its name.
func (f facts) publishedNext(last *timestamppb.Timestamp) *timestamppb.Timestamp {
	next := f.due.next
	if f.due.delayed.After(last.AsTime()) {
		next = f.due.delayed
	}
	switch {
	case f.optionsLost():
		return f.status.GetNextScheduleTime()
	case next.IsZero() || f.stopped() || !f.options.GetPublishNextScheduleTime():
		return nil
	}
	return timestamppb.New(next)
}

// combinedEdits are the edits that the rules ask for, and the record of an edit of the
// schedule; nil if there are none.
func combinedEdits(f facts, answers []asked) *jobpolicyv1.CronJobEdits {
	edits := &jobpolicyv1.CronJobEdits{ObservedSchedule: f.due.observed}
	for _, a := range answers {
		if a.Answer.edits != nil {
			proto.Merge(edits, a.Answer.edits)
		}
	}
	if f.spec.GetDeleting() || proto.Size(edits) == 0 {
		return nil
	}
	return edits
}

func deletions(jobs []*jobpolicyv1.OwnedJob, reason jobpolicyv1.DeleteJobReason) []*jobpolicyv1.DeleteJob {
	var deletes []*jobpolicyv1.DeleteJob
	for _, job := range jobs {
		deletes = append(deletes, &jobpolicyv1.DeleteJob{Uid: job.GetUid(), Name: job.GetName(), Reason: reason})
	}
	return deletes
}

func deletionEvents(deletes []*jobpolicyv1.DeleteJob) []*jobpolicyv1.JobEvent {
	var events []*jobpolicyv1.JobEvent
	for _, d := range deletes {
		events = append(events, normal(eventSuccessfulDelete, "Deleted job %s", d.GetName()))
	}
	return events
}

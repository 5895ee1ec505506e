package cronjob

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/rules"
	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxListedSkipped is how many skipped runs an explanation lists.
const maxListedSkipped = 10

// explain says how the decision came about.
func explain(f facts, answers []asked, h history, waiting waits.List, resp *jobpolicyv1.DecideCronJobResponse) *jobpolicyv1.CronJobExplanation {
	e := &jobpolicyv1.CronJobExplanation{Kept: explainKept(f.snapshot, f.runs, h, resp.GetDelete()), Waits: waiting}
	e.Rules, e.DecidingRule = rules.Explain(answers)
	last := answers[len(answers)-1].Answer
	if next, ok := f.nextRun(); ok {
		e.NextScheduleTime = timestamppb.New(next)
		listSkipped(e, f, last)
	}
	resp.Explanation = e
	e.Summary = summarize(last, resp)
	return e
}

// waitsOf is what the decision waits for: what the rules answered, the next run, and the
// scheduled time of a Job that is in the future.
func waitsOf(f facts, answers []asked) waits.List {
	var list waits.List
	for _, a := range answers {
		list = append(list, a.Answer.waits...)
	}
	if next, ok := f.nextRun(); ok {
		list = append(list, &jobpolicyv1.Wait{
			Reason: jobpolicyv1.WaitReason_WAIT_REASON_SCHEDULE,
			Detail: "the next run is due at " + clockText(next) + f.staggered(next),
			Until:  timestamppb.New(next),
		})
	}
	if w := earlyRun(f.snapshot); w != nil && !f.spec.GetDeleting() {
		list = append(list, w)
	}
	return list
}

// nextRun is when the next run is due, unless the CronJob is suspended or is being deleted.
func (f facts) nextRun() (time.Time, bool) {
	return f.due.next, !f.due.next.IsZero() && !f.stopped()
}

// stopped reports whether no run of the schedule comes before somebody changes that.
func (s *snapshot) stopped() bool { return s.spec.GetSuspend() || s.spec.GetDeleting() }

// staggered says when the next run starts, if its CronJob has a stagger.
func (f facts) staggered(next time.Time) string {
	if f.options.GetStaggerSeconds() == 0 {
		return ""
	}
	after, _ := f.schedule.Next(next)
	return ", and starts at " + clockText(next.Add(StartDelayOf(f.req.GetCronJob(), f.options, next, after).Total()))
}

// earlyRun waits for the earliest scheduled time of a Job that is in the future. From
// then on the Job counts like others for status.lastScheduleTime and for the history
// limits. nil if there is none.
func earlyRun(s *snapshot) *jobpolicyv1.Wait {
	var first *jobpolicyv1.OwnedJob
	for _, job := range s.jobs {
		if s.early(job) && (first == nil || job.GetScheduledTime().AsTime().Before(first.GetScheduledTime().AsTime())) {
			first = job
		}
	}
	if first == nil {
		return nil
	}
	at := first.GetScheduledTime()
	return &jobpolicyv1.Wait{
		Reason: jobpolicyv1.WaitReason_WAIT_REASON_SCHEDULE,
		Detail: "the scheduled time of Job " + first.GetName() + " is yet to come: " + clockText(at.AsTime()),
		Until:  proto.CloneOf(at),
	}
}

// listSkipped lists the times that were due and are not started, the newest
// first.
func listSkipped(e *jobpolicyv1.CronJobExplanation, f facts, last answer) {
	if f.due.at.IsZero() {
		return
	}
	e.SkippedTotal = f.due.times - 1 - f.due.later
	if last.skipped != jobpolicyv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		e.SkippedTotal++
		e.Skipped = append(e.Skipped, &jobpolicyv1.SkippedRun{
			ScheduledTime: timestamppb.New(f.due.at), Reason: last.skipped, Detail: last.detail,
		})
	}
	for _, at := range f.missedBefore(f.due, maxListedSkipped-len(e.GetSkipped())) {
		e.Skipped = append(e.Skipped, f.passedOver(at))
	}
}

// passedOver says why a time before that of the run that is due starts no run.
func (f facts) passedOver(at time.Time) *jobpolicyv1.SkippedRun {
	r := &jobpolicyv1.SkippedRun{
		ScheduledTime: timestamppb.New(at), Reason: jobpolicyv1.SkipReason_SKIP_REASON_LATER_RUN,
		Detail: "a later run, that of " + clockText(f.due.at) + ", was due too",
	}
	seconds, _ := f.deadline()
	switch name := f.scheduledName(at); {
	case f.maxMissed() <= 1:
	case f.taken(name):
		r.Reason, r.Detail = jobpolicyv1.SkipReason_SKIP_REASON_NAME_TAKEN, "a Job named "+name+" belongs to somebody else"
	case f.tooLate(due{start: at}):
		r.Reason, r.Detail = jobpolicyv1.SkipReason_SKIP_REASON_STARTING_DEADLINE, fmt.Sprintf("it is later than %ds", seconds)
	default:
		r.Detail = fmt.Sprintf("later runs were due too, and at most %d missed ones start", f.maxMissed())
	}
	return r
}

// summarize says in one sentence what is decided and why.
func summarize(last answer, resp *jobpolicyv1.DecideCronJobResponse) string {
	parts := []string{last.detail}
	if resp.GetCreate() != nil {
		parts = append(parts, "create "+resp.GetCreate().GetName())
	}
	if n := len(resp.GetDelete()); n > 0 {
		parts = append(parts, fmt.Sprintf("delete Jobs: %d", n))
	}
	if resp.GetStatus() != nil {
		parts = append(parts, fmt.Sprintf("write the status, active runs: %d", len(resp.GetStatus().GetActive())))
	}
	if resp.GetEdits().GetSuspend() {
		parts = append(parts, "suspend the CronJob")
	}
	if at := resp.GetExplanation().GetNextScheduleTime(); at != nil {
		parts = append(parts, "next run at "+clockText(at.AsTime()))
	}
	return strings.Join(parts, "; ")
}

// trimExplanation removes what the caller did not ask for.
func trimExplanation(e *jobpolicyv1.CronJobExplanation, explain jobpolicyv1.Explain) *jobpolicyv1.CronJobExplanation {
	switch explain {
	case jobpolicyv1.Explain_EXPLAIN_NONE:
		return nil
	case jobpolicyv1.Explain_EXPLAIN_FACTS:
		e.Summary, e.Rules = "", nil
		for _, w := range e.GetWaits() {
			w.Detail = ""
		}
		for _, run := range e.GetSkipped() {
			run.Detail = ""
		}
		for _, job := range e.GetKept() {
			job.Detail = ""
		}
	}
	return e
}

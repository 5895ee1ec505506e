package cronjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/internal/rules"
	"jobpolicy.dev/engine/internal/waits"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// facts are what the rules read. due is the zero value if the schedule cannot be
// read.
type facts struct {
	*snapshot
	runs runs
	due  due
}

// An answer is the answer of one rule: a decision, or why the rule does not decide.
type answer struct {
	decides bool
	detail  string
	// start is the run to start; nil to start none.
	start *run
	// replaces are the Jobs to delete first.
	replaces []*jobpolicyv1.OwnedJob
	edits    *jobpolicyv1.CronJobEdits
	// processed says that the run that is due has been started already.
	processed bool
	// skipped says why the run that is due will not be started; UNSPECIFIED if it
	// may be.
	skipped jobpolicyv1.SkipReason
	waits   []*jobpolicyv1.Wait
	events  []*jobpolicyv1.JobEvent
}

func no(format string, args ...any) answer { return answer{detail: fmt.Sprintf(format, args...)} }

func decided(format string, args ...any) answer {
	return answer{decides: true, detail: fmt.Sprintf(format, args...)}
}

func (a answer) with(events ...*jobpolicyv1.JobEvent) answer {
	a.events = append(a.events, events...)
	return a
}

func (a answer) waiting(reason jobpolicyv1.WaitReason, until time.Time) answer {
	w := &jobpolicyv1.Wait{Reason: reason, Detail: a.detail}
	if !until.IsZero() {
		w.Until = timestamp.Of(until)
	}
	a.waits = append(a.waits, w)
	return a
}

// deferred adds a wait, because the caller deferred a step.
func (a answer) deferred(step jobpolicyv1.Step, until time.Time) answer {
	a = a.waiting(jobpolicyv1.WaitReason_WAIT_REASON_DEFERRED, until)
	a.waits[len(a.waits)-1].Step = step
	return a
}

// Decides and Detail make an answer one of package rules.
func (a answer) Decides() bool  { return a.decides }
func (a answer) Detail() string { return a.detail }

// asked is a rule that was asked, with its answer.
type asked = rules.Asked[answer]

// startRules returns the rules in the order in which they are asked; the first that decides wins,
// and the last one always decides. This order is the specification. It is upstream's (syncCronJob,
// v1.37), with the rules of our own options added.
func startRules() []rules.Rule[facts, answer] {
	return []rules.Rule[facts, answer]{
		{Name: jobpolicyv1.Rule_RULE_DELETING, Ask: deleting},
		{Name: jobpolicyv1.Rule_RULE_INVALID_POLICY, Ask: invalidPolicy},
		{Name: jobpolicyv1.Rule_RULE_MANUAL_RUN_REQUESTED, Ask: manualRunRequested},
		{Name: jobpolicyv1.Rule_RULE_UNKNOWN_TIME_ZONE, Ask: unknownTimeZone},
		{Name: jobpolicyv1.Rule_RULE_SUSPENDED, Ask: suspended},
		{Name: jobpolicyv1.Rule_RULE_TOO_MANY_FAILURES, Ask: tooManyFailures},
		{Name: jobpolicyv1.Rule_RULE_UNPARSEABLE_SCHEDULE, Ask: unparseableSchedule},
		{Name: jobpolicyv1.Rule_RULE_NEVER_DUE, Ask: neverDue},
		{Name: jobpolicyv1.Rule_RULE_NOTHING_DUE, Ask: nothingDue},
		{Name: jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED, Ask: startingDeadlinePassed},
		{Name: jobpolicyv1.Rule_RULE_MISSED_RUN, Ask: missedRun},
		{Name: jobpolicyv1.Rule_RULE_ALREADY_STARTED, Ask: alreadyStarted},
		{Name: jobpolicyv1.Rule_RULE_NAME_TAKEN, Ask: nameTaken},
		{Name: jobpolicyv1.Rule_RULE_START_JITTER, Ask: startJitter},
		{Name: jobpolicyv1.Rule_RULE_CONCURRENCY_FORBIDDEN, Ask: concurrencyForbidden},
		{Name: jobpolicyv1.Rule_RULE_CREATION_DEFERRED, Ask: creationDeferred},
		{Name: jobpolicyv1.Rule_RULE_GROUP_FULL, Ask: groupFull},
		{Name: jobpolicyv1.Rule_RULE_RUN_DUE, Ask: runDue},
	}
}

func deleting(f facts) answer {
	if f.spec.GetDeleting() {
		return decided("the CronJob is being deleted")
	}
	return no("the CronJob is not being deleted")
}

// invalidPolicy waits for options that can be read: they may say that a run does not start, or
// starts later. It comes before manual runs, for which they may say so, too.
func invalidPolicy(f facts) answer {
	if !f.optionsLost() {
		return no("the options are known")
	}
	return decided("the options that the CronJob asks for cannot be read: %s", f.spec.GetOptionProblems()[0]).
		waiting(jobpolicyv1.WaitReason_WAIT_REASON_INVALID_POLICY, time.Time{})
}

// manualRunRequested starts the manual run that spec.run_now asks for, once for each text.
// It comes before the rules of the schedule, so that the run also
// starts in a CronJob whose schedule is always due.
func manualRunRequested(f facts) answer {
	if f.spec.GetRunNow() == "" {
		return no("no manual run is requested")
	}
	requested := f.manualRun()
	clearIt := &jobpolicyv1.CronJobEdits{ClearRunNow: true}
	if job, done := f.startedFor(requested); done {
		a := no("the manual run was started as %s", job.GetName())
		a.edits = clearIt
		return a
	}
	if f.taken(requested.name) {
		a := no("the manual run cannot start: a Job named %s belongs to somebody else", requested.name)
		a.edits = clearIt
		return a.with(takenEvent(requested.name))
	}
	if f.forbidden() {
		a := decided("a manual run is requested; runs that must end before it: %d", len(f.runs.active))
		return a.waiting(jobpolicyv1.WaitReason_WAIT_REASON_CONCURRENCY_POLICY, time.Time{})
	}
	if step, until, is := f.manualDeferredUntil(); is {
		return no("a manual run is requested; creating its Job failed before").deferred(step, until)
	}
	if waits, is := f.manualWaits(); is {
		return waits
	}
	a := decided("a manual run is requested")
	a.start, a.replaces, a.edits = &requested, f.replaced(), clearIt
	return a
}

// startedFor finds the Job of a manual run.
func (s *snapshot) startedFor(requested run) (*jobpolicyv1.OwnedJob, bool) {
	for _, job := range s.jobs {
		if job.GetRunNow() == requested.runNow {
			return job, true
		}
	}
	return s.named(requested.name)
}

// taken reports whether a Job that the CronJob does not control has the name.
func (s *snapshot) taken(name string) bool { return slices.Contains(s.req.GetNamesTaken(), name) }

func takenEvent(name string) *jobpolicyv1.JobEvent {
	return warning(eventFailedCreate, "Error creating job: a Job named %s exists that this CronJob does not control", name)
}

func unknownTimeZone(f facts) answer {
	if f.zoneErr == nil {
		return no("the time zone is %s", f.zone)
	}
	return decided("%v", f.zoneErr).with(warning(eventUnknownTimeZone, "invalid timeZone: %q: %v", f.spec.GetTimeZone(), f.zoneErr))
}

func suspended(f facts) answer {
	if f.spec.GetSuspend() {
		return decided("the CronJob is suspended")
	}
	return no("the CronJob is not suspended")
}

// tooManyFailures suspends the CronJob, and records the time of the last failure that
// it counted. So the count begins at zero when someone resumes the CronJob.
func tooManyFailures(f facts) answer {
	n, limit := len(f.runs.failures), int(f.options.GetSuspendAfterFailures())
	if limit == 0 || n < limit {
		return no("failed runs in a row: %d, limit: %s", n, limitText(limit))
	}
	a := decided("failed runs in a row: %d, limit: %d", n, limit)
	a.edits = &jobpolicyv1.CronJobEdits{Suspend: true, FailuresCountedUntil: timestamppb.New(f.runs.lastFailure())}
	return a.with(warning(eventSuspendedAfterFailures, "Suspended after failed runs in a row: %d", n))
}

func limitText(limit int) string {
	if limit == 0 {
		return "none"
	}
	return fmt.Sprint(limit)
}

// shortened cuts off a text of a user that is too long for an explanation.
func shortened(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func unparseableSchedule(f facts) answer {
	if f.scheduleErr == nil {
		return no("the schedule is %s", shortened(f.spec.GetSchedule()))
	}
	return decided("the schedule cannot be read: %v", f.scheduleErr).
		with(f.unsupportedZone()...).
		with(warning(eventUnparseableSchedule, "unparseable schedule: %q : %v", f.spec.GetSchedule(), f.scheduleErr))
}

// unsupportedZone warns about a time zone in the schedule, which the API server no
// longer accepts.
func (s *snapshot) unsupportedZone() []*jobpolicyv1.JobEvent {
	if !s.zoneInSchedule {
		return nil
	}
	return []*jobpolicyv1.JobEvent{warning(eventUnsupportedSchedule, "CRON_TZ or TZ used in schedule %q is not officially supported, "+
		"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", s.spec.GetSchedule())}
}

func neverDue(f facts) answer {
	if !f.due.at.IsZero() || !f.due.next.IsZero() {
		return no("the schedule has a next time")
	}
	return decided("the schedule has no time within five years of %s", clockText(f.due.after)).
		with(warning(eventInvalidSchedule, "invalid schedule: %s : time difference between two schedules is less than 1 second", f.spec.GetSchedule()))
}

func nothingDue(f facts) answer {
	if f.due.at.IsZero() {
		return decided("nothing is due since %s", clockText(f.due.after))
	}
	return no("due at %s; times due since %s: %d", clockText(f.due.at), clockText(f.due.after), f.due.times)
}

func startingDeadlinePassed(f facts) answer {
	seconds, has := f.deadline()
	if !has {
		return no("the run may start however late")
	}
	late := f.now.Unix() - f.due.start.Unix()
	if !f.tooLate(f.due) {
		return no("late by %ds, allowed: %ds", late, seconds)
	}
	a := decided("late by %ds, allowed: %ds", late, seconds)
	a.skipped = jobpolicyv1.SkipReason_SKIP_REASON_STARTING_DEADLINE
	if missed, ok := f.startDeadline(f.due); ok {
		return f.tellMissed(a, missed)
	}
	return a
}

// alreadyStarted finds a Job that has the run's name but lacks the annotation that
// marks runs. With the annotation, the Job's time would already count as that of the
// last run.
func alreadyStarted(f facts) answer {
	name := f.scheduledName(f.due.at)
	if _, started := f.named(name); started {
		a := decided("the Job %s is there", name)
		a.processed = true
		return a
	}
	return no("no Job of the CronJob is named %s", name)
}

func nameTaken(f facts) answer {
	name := f.scheduledName(f.due.at)
	if !f.taken(name) {
		return no("nobody else's Job is known to be named %s", name)
	}
	a := decided("a Job named %s belongs to somebody else", name)
	a.skipped = jobpolicyv1.SkipReason_SKIP_REASON_NAME_TAKEN
	return a.with(takenEvent(name))
}

func startJitter(f facts) answer {
	if !f.due.start.After(f.now) {
		return no("started %ds after it is due", f.due.start.Unix()-f.due.at.Unix())
	}
	a := decided("the run that is due at %s starts at %s%s", clockText(f.due.at), clockText(f.due.start), f.due.delay.text())
	return a.waiting(jobpolicyv1.WaitReason_WAIT_REASON_START_JITTER, f.due.start)
}

func (f facts) forbidden() bool {
	return f.spec.GetConcurrencyPolicy() == jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID && len(f.runs.active) > 0
}

func concurrencyForbidden(f facts) answer {
	if !f.forbidden() {
		return no("concurrency policy %s, active runs: %d", policyText(f.spec.GetConcurrencyPolicy()), len(f.runs.active))
	}
	missed, _ := f.startDeadline(f.due)
	a := decided("concurrency policy Forbid, active runs: %d%s", len(f.runs.active), f.due.laterText()).
		waiting(jobpolicyv1.WaitReason_WAIT_REASON_CONCURRENCY_POLICY, missed)
	if f.isRecent(f.due.start) {
		a = a.with(normal(eventJobAlreadyActive, "Not starting job because prior execution is running and concurrency policy is Forbid"))
	}
	return a
}

// creationDeferredUntil is until when the caller wants no Jobs created.
func (s *snapshot) creationDeferredUntil() (time.Time, bool) {
	until, deferred := waits.DeferredUntil(s.req.GetDeferrals(), jobpolicyv1.Step_STEP_CREATE_JOB)
	return until, deferred && until.After(s.now)
}

// manualDeferredUntil is until when the caller wants no Job of a manual run created, and by which
// step. A manual run never holds up the runs of the schedule.
func (s *snapshot) manualDeferredUntil() (jobpolicyv1.Step, time.Time, bool) {
	until, deferred := s.creationDeferredUntil()
	alone, asked := waits.DeferredUntil(s.req.GetDeferrals(), jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB)
	if asked && alone.After(s.now) && (!deferred || alone.After(until)) {
		return jobpolicyv1.Step_STEP_CREATE_MANUAL_JOB, alone, true
	}
	return jobpolicyv1.Step_STEP_CREATE_JOB, until, deferred
}

func creationDeferred(f facts) answer {
	until, is := f.creationDeferredUntil()
	if !is {
		return no("creating Jobs is not deferred")
	}
	return decided("creating Jobs failed before").deferred(jobpolicyv1.Step_STEP_CREATE_JOB, until)
}

// replaced are the Jobs to delete before a run starts.
func (f facts) replaced() []*jobpolicyv1.OwnedJob {
	if f.spec.GetConcurrencyPolicy() != jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE {
		return nil
	}
	return notDeleting(f.runs.active)
}

func runDue(f facts) answer {
	r := f.scheduledRun(f.due.at)
	a := decided("the run of %s is started%s", clockText(f.due.at), f.due.laterText())
	a.start, a.replaces = &r, f.replaced()
	if f.manyMissed(f.due) {
		a = a.with(warning(eventTooManyMissedTimes,
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"))
	}
	return a.with(f.unsupportedZone()...)
}

func policyText(p jobpolicyv1.ConcurrencyPolicy) string {
	switch p {
	case jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID:
		return "Forbid"
	case jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE:
		return "Replace"
	}
	return "Allow"
}

func clockText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

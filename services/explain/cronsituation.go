package explain

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// situation finds the state and writes the headline, by the rule of the engine that
// decided whether a run starts.
func (w *cronWork) situation() {
	e := w.resp.GetExplanation()
	rule := e.GetDecidingRule()
	if !w.applies(rule) {
		rule = jobpolicyv1.Rule_RULE_UNSPECIFIED
	}
	switch rule {
	case jobpolicyv1.Rule_RULE_DELETING:
		w.Change = append(w.Change, whoRemoves(w.CronJob.Finalizers, "Jobs", len(w.owned) == 0, w.Now.Sub(w.CronJob.DeletionTimestamp.Time) > reactionTime)...)
		w.say(Deleting, "Deletion of the CronJob was requested at %s: no more runs start. %s", w.when(w.CronJob.DeletionTimestamp.Time), kept(w.CronJob.Finalizers))
	case jobpolicyv1.Rule_RULE_INVALID_POLICY:
		w.advise("Correct the policy, or the annotation %s; the CronJob goes on then, and runs that were due meanwhile count as missed.", wire.Policy)
		w.say(Invalid, "No run starts: %s. It has no last valid ones (annotation %s).", decidedBecause(e), wire.LastValidPolicy)
	case jobpolicyv1.Rule_RULE_MANUAL_RUN_REQUESTED:
		w.runNow(decidedBecause(e))
	case jobpolicyv1.Rule_RULE_UNKNOWN_TIME_ZONE:
		w.advise("Set spec.timeZone to an IANA name such as Europe/Berlin.")
		w.say(Invalid, "No run starts: %s.", decidedBecause(e))
	case jobpolicyv1.Rule_RULE_UNPARSEABLE_SCHEDULE:
		if w.unreadable == nil { // another engine may read less
			w.unreadable = errors.New(`schedule: expected five fields such as "30 2 * * 1-5"`)
		}
		w.advise("Fix the %v.", w.unreadable)
		w.say(Invalid, "No run starts: %s.", decidedBecause(e))
	case jobpolicyv1.Rule_RULE_NEVER_DUE:
		w.advise("Set spec.schedule to a day that comes: \"0 0 30 2 *\", for example, never does.")
		w.say(Invalid, "No run ever starts: %s.", decidedBecause(e))
	case jobpolicyv1.Rule_RULE_SUSPENDED:
		w.suspended()
	case jobpolicyv1.Rule_RULE_TOO_MANY_FAILURES:
		w.advise("Fix what makes the runs fail, and resume the CronJob.")
		w.say(Suspended, "The CronJob is being suspended, as cronJob.suspendAfterFailures asks: %s.", decidedBecause(e))
	case jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED:
		w.advise("spec.startingDeadlineSeconds (%d) is how late a run may start. See why it was late: an active run, a suspension, or %s that was away.",
			*w.CronJob.Spec.StartingDeadlineSeconds, w.cronManager())
		w.say(Missed, "The run of %s does not start any more: %s.%s", w.when(w.due()), decidedBecause(e), w.nextText())
	case jobpolicyv1.Rule_RULE_MISSED_RUN:
		w.advise("cronJob.maxMissedRuns says how many missed runs start. See why this one was not on time: a suspension, or %s that was away.", w.cronManager())
		w.say(Missed, "The run of %s does not start any more: %s.%s", w.when(w.due()), decidedBecause(e), w.nextText())
	case jobpolicyv1.Rule_RULE_NAME_TAKEN:
		w.advise("Delete the Job that has the name; the run starts then, unless spec.startingDeadlineSeconds are over.")
		w.say(Blocked, "The run of %s cannot start: %s.%s", w.when(w.due()), decidedBecause(e), w.nextText())
	case jobpolicyv1.Rule_RULE_START_JITTER:
		w.delayed()
	case jobpolicyv1.Rule_RULE_CONCURRENCY_FORBIDDEN:
		w.forbidden()
	case jobpolicyv1.Rule_RULE_GROUP_FULL:
		w.groupFull()
	case jobpolicyv1.Rule_RULE_RUN_DUE:
		w.runDue()
	case jobpolicyv1.Rule_RULE_NOTHING_DUE, jobpolicyv1.Rule_RULE_ALREADY_STARTED, jobpolicyv1.Rule_RULE_CREATION_DEFERRED:
		w.scheduled()
	default:
		w.say(Waiting, "The engine does not say why no run starts: its rule (%s) does not apply to this CronJob, or is not known here.",
			cmp.Or(e.GetDecidingRule().Name(), "none"))
	}
}

// applies reports whether the CronJob and the decision have what a rule is about. They may
// lack it if the answer is that of another engine.
func (w *cronWork) applies(rule jobpolicyv1.Rule) bool {
	switch rule {
	case jobpolicyv1.Rule_RULE_DELETING:
		return w.CronJob.DeletionTimestamp != nil
	case jobpolicyv1.Rule_RULE_STARTING_DEADLINE_PASSED:
		return w.CronJob.Spec.StartingDeadlineSeconds != nil
	case jobpolicyv1.Rule_RULE_RUN_DUE:
		return w.resp.GetCreate() != nil
	}
	return true
}

func (w *cronWork) say(s State, format string, args ...any) {
	w.State, w.Headline = s, fmt.Sprintf(format, args...)
}

func (w *cronWork) advise(format string, args ...any) {
	w.Change = append(w.Change, fmt.Sprintf(format, args...))
}

// decidedBecause is the answer of the deciding rule.
func decidedBecause(e *jobpolicyv1.CronJobExplanation) string {
	for _, r := range e.GetRules() {
		if r.GetDecided() {
			return r.GetDetail()
		}
	}
	return ""
}

// due is the time of the run to start: the latest one of the schedule, or, with cronJob.maxMissedRuns,
// an earlier one. It is called if the engine says that a run is due.
func (w *cronWork) due() time.Time {
	if at := w.resp.GetCreate().GetScheduledTime(); at != nil || w.schedule == nil {
		return at.AsTime()
	}
	due, after := w.schedule.Latest(w.since(), w.Now), w.since()
	if skipped := w.resp.GetExplanation().GetSkipped(); len(skipped) > 0 {
		after = skipped[0].GetScheduledTime().AsTime() // The newest: before the due run, or that run, if it is the latest one.
	}
	for range w.plan.MissedRuns - 1 {
		earlier := w.schedule.Latest(after, due.Add(-time.Second))
		if !earlier.After(after) {
			break
		}
		due = earlier
	}
	return due
}

// since is the last run that was started, or the CronJob's creation.
func (w *cronWork) since() time.Time {
	if last := w.CronJob.Status.LastScheduleTime; last != nil {
		return last.Time
	}
	return w.CronJob.CreationTimestamp.Time
}

func (w *cronWork) nextText() string {
	next := w.resp.GetExplanation().GetNextScheduleTime()
	if next == nil {
		return " There is no further run."
	}
	return fmt.Sprintf(" The next run is due at %s%s.", w.when(next.AsTime()), w.startText(next.AsTime()))
}

// startText says when a run starts if that is later than it is due.
func (w *cronWork) startText(at time.Time) string {
	if w.schedule == nil {
		return ""
	}
	if starts := w.schedule.Start(at); starts.After(at) {
		return ", and starts at " + starts.UTC().Format(time.RFC3339)
	}
	return ""
}

// delayed: a run is due, and its stagger or jitter has not passed.
func (w *cronWork) delayed() {
	o := wire.CronJobSpec(w.CronJob, false, w.Zone).GetOptions()
	if o.GetStaggerSeconds() == 0 {
		w.advise("No action needed: the run starts by itself. cronJob.startJitterSeconds delays each run, always by the same time for the same run.")
		w.say(Waiting, "The run of %s waits for its start jitter.", w.when(w.due()))
		return
	}
	w.advise("No action needed: the run starts by itself. cronJob.staggerSeconds gives each CronJob an offset of its own, which follows from its namespace and name.")
	w.say(Waiting, "The run of %s waits for its offset%s.", w.when(w.due()), w.startText(w.due()))
}

// blocked: a run is to be started, and the API server refuses its Job.
func (w *cronWork) blocked(run string) bool {
	i := slices.IndexFunc(w.refusals, func(r writes.Refusal) bool { return r.Kind == writes.CreateRun })
	if i < 0 {
		return false
	}
	why, change := whyNotCreated(w.refusals[i].Why, true)
	w.advise("%s", change)
	w.say(Blocked, "%s cannot start, because the API server refuses its Job: %s. Last tried %s.", run, why, w.ago(w.refusals[i].Last))
	return true
}

func (w *cronWork) runNow(detail string) {
	if w.blocked("A run that "+wire.RunNow+" asks for") || w.waitsInCluster("The run that "+wire.RunNow+" asks for", true) {
		return
	}
	if create := w.resp.GetCreate(); create != nil {
		w.advise("No action needed: %s starts the Job %s.", w.cronManager(), create.GetName())
		w.say(Starting, "A run starts now, because %s asks for it.", wire.RunNow)
		return
	}
	w.adviseOnActive()
	w.say(Waiting, "A run that %s asks for waits: %s.", wire.RunNow, detail)
}

// suspended says which runs were missed meanwhile, and whether they still start.
func (w *cronWork) suspended() {
	how := "spec.suspend is false"
	if w.handedOver() {
		how = "the annotation " + wire.CronJobSuspend + " is gone"
		w.advise("Resume it: kubectl annotate cronjob/%s -n %s %s-", w.Name, w.Namespace, wire.CronJobSuspend)
	} else {
		w.advise("Resume it: kubectl patch cronjob/%s -n %s -p '{\"spec\":{\"suspend\":false}}'", w.Name, w.Namespace)
	}
	w.say(Suspended, "The CronJob is suspended: no run starts until %s.", how)
	if w.schedule == nil {
		return
	}
	n := w.schedule.Count(w.since(), w.Now)
	if n == 0 {
		return
	}
	w.Headline += fmt.Sprintf(" Runs missed since %s: %d, the last at %s.", w.when(w.since()), n, w.when(w.schedule.Latest(w.since(), w.Now)))
	w.adviseOnMissed()
}

// adviseOnMissed says which of the missed runs start when the CronJob is resumed.
func (w *cronWork) adviseOnMissed() {
	which := w.plan.OnResume()
	if which == "" {
		w.advise("When it is resumed, no missed run starts (cronJob.maxMissedRuns).")
		return
	}
	if seconds := w.CronJob.Spec.StartingDeadlineSeconds; seconds != nil {
		w.advise("When it is resumed, %s only if it is at most %s late (startingDeadlineSeconds).", which, clock(*seconds))
		return
	}
	w.advise("When it is resumed, %s at once, however late. Set startingDeadlineSeconds before, if that is not wanted.", which)
}

// clock writes seconds as people do.
func clock(seconds int64) string {
	if seconds > longestDuration {
		return fmt.Sprintf("%d seconds", seconds)
	}
	return simulate.Clock(time.Duration(seconds) * time.Second)
}

func (w *cronWork) forbidden() {
	w.adviseOnActive()
	w.advise("An edit of the CronJob changes later runs only. To let the next one start, end the active run by deleting its Job. activeDeadlineSeconds in the Job's template bounds how long a run may take.")
	w.advise("spec.concurrencyPolicy: Replace would end the active run, Allow would let both run.")
	w.say(Waiting, "The run of %s waits until the active runs have ended, because spec.concurrencyPolicy is Forbid: %s.", w.when(w.due()), w.activeNames())
	for _, wait := range w.resp.GetExplanation().GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_CONCURRENCY_POLICY && wait.GetUntil() != nil {
			w.Headline += fmt.Sprintf(" From %s on it is too late (startingDeadlineSeconds).", w.when(wait.GetUntil().AsTime()))
		}
	}
}

func (w *cronWork) activeNames() string { return namesOf(w.Active) }

func namesOf(runs []ActiveRun) string {
	var names []string
	for _, run := range runs {
		names = append(names, run.Job)
	}
	return strings.Join(names, ", ")
}

func (w *cronWork) adviseOnActive() {
	if len(w.Active) == 0 {
		return
	}
	w.advise("See why it has not ended: kubectl jobpolicy explain job/%s -n %s", w.Active[0].Job, w.Namespace)
	if ptr.Deref(w.CronJob.Spec.JobTemplate.Spec.Suspend, false) {
		w.advise("spec.jobTemplate.spec.suspend is true: each run is created suspended, and stays so until somebody resumes it.")
	}
}

// runDue: by the rules a run starts now. If it has been due for long, something prevents
// it.
func (w *cronWork) runDue() {
	at := w.resp.GetCreate().GetScheduledTime().AsTime()
	if run := "The run of " + w.when(at); w.blocked(run) || w.waitsInCluster(run, false) {
		return
	}
	replaced := ""
	if len(w.resp.GetDelete()) > 0 {
		replaced = fmt.Sprintf(" The active run is deleted before (concurrencyPolicy Replace): %s.", w.activeNames())
	}
	starts := at
	if w.schedule != nil {
		starts = w.schedule.Start(at)
	}
	if w.Now.Sub(latestOf(starts, w.edited())) < reactionTime {
		w.say(Starting, "The run of %s starts.%s", w.when(at), replaced)
		return
	}
	w.advise("See whether %s runs, and what it logs.", w.cronManager())
	w.say(Late, "The run of %s is due, and %s has not started it.%s", w.when(at), w.cronManager(), replaced)
}

// edited is when the spec of the CronJob was edited last, as far as the API server says. The executor writes annotations.
func (w *cronWork) edited() (last time.Time) {
	for _, m := range w.CronJob.ManagedFields {
		ofSpec := m.FieldsV1 == nil || bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:spec"`))
		if m.Subresource == "" && m.Time != nil && ofSpec && m.Manager != fieldManager {
			last = latestOf(last, wire.Time(m.Time.Time))
		}
	}
	return last
}

func (w *cronWork) scheduled() {
	next := w.resp.GetExplanation().GetNextScheduleTime()
	if next == nil {
		w.say(Scheduled, "The CronJob has no further run within five years.")
		return
	}
	w.say(Scheduled, "The next run is due at %s%s.", w.when(next.AsTime()), w.startText(next.AsTime()))
	w.tellBeyondHistory()
	switch n := len(w.Active); {
	case n == 1:
		w.Headline += fmt.Sprintf(" One run is active: %s.", w.activeNames())
	case n > 1:
		w.Headline += fmt.Sprintf(" Active runs: %d.", n)
	}
	if n := w.failedInARow(); n > 0 {
		last := w.Ended[slices.IndexFunc(w.Ended, func(run EndedRun) bool { return !run.ByHand })]
		w.Headline += fmt.Sprintf(" Failed runs in a row: %d, the last one %s (%s).", n, last.Job, last.Reason)
		w.advise("See why it failed: kubectl jobpolicy explain job/%s -n %s", last.Job, w.Namespace)
	}
}

// tellBeyondHistory names the Jobs that the history limits no longer keep, if they are still there long after the last run
// ended, which is when they go.
func (w *cronWork) tellBeyondHistory() {
	if len(w.resp.GetDelete()) == 0 || len(w.Ended) == 0 || w.Now.Sub(w.Ended[0].Ended) < SlowStart || len(w.refusals) > 0 {
		return
	}
	var names []string
	for _, d := range w.resp.GetDelete() {
		names = append(names, d.GetName())
	}
	if len(names) > maxEnded {
		names = append(names[:maxEnded], "…")
	}
	w.Headline += fmt.Sprintf(" Jobs that the history limits do not keep any more are still there: %d (%s).", len(w.resp.GetDelete()), strings.Join(names, ", "))
	w.advise("See whether %s runs, and what it logs.", w.cronManager())
}

// failedInARow counts the failed runs after the last success, among the Jobs in Ended.
func (w *cronWork) failedInARow() int {
	n := 0
	for _, run := range w.Ended {
		switch {
		case run.ByHand:
		case run.Outcome != string(batchv1.JobFailed):
			return n
		default:
			n++
		}
	}
	return n
}

// maxWarnings is how many events a report lists.
const maxWarnings = 5

// warnings lists the events of type Warning, the newest first, and the engine's warnings.
func (w *cronWork) warnings() {
	for _, e := range w.resp.GetEvents() {
		if e.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			w.Warnings = append(w.Warnings, e.GetReason()+": "+e.GetMessage())
		}
	}
	var warned []corev1.Event
	for i := range w.Events {
		if w.Events[i].Type == corev1.EventTypeWarning {
			warned = append(warned, w.Events[i])
		}
	}
	newestFirst(warned)
	for i := range warned[:min(len(warned), maxWarnings)] {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: %s (%s)", warned[i].Reason, warned[i].Message, w.ago(Seen(&warned[i]))))
	}
}

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxEnded is how many Jobs that have ended a report lists.
const maxEnded = 5

// runs lists the CronJob's Jobs.
func (w *cronWork) runs() {
	for _, job := range w.owned {
		switch {
		case wire.FinishedCondition(job) != nil:
			w.Ended = append(w.Ended, endedRun(job))
		case wire.IsRun(job) || w.listed(job):
			w.Active = append(w.Active, activeRun(job))
		default:
			w.ByHand = append(w.ByHand, activeRun(job))
		}
	}
	byName := func(a, b ActiveRun) int { return cmp.Compare(a.Job, b.Job) }
	slices.SortFunc(w.Active, byName)
	slices.SortFunc(w.ByHand, byName)
	slices.SortFunc(w.Ended, func(a, b EndedRun) int { return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(b.Job, a.Job)) })
	w.Ended = w.Ended[:min(len(w.Ended), maxEnded)]
}

// listed reports whether the status has the Job as active.
func (w *cronWork) listed(job *batchv1.Job) bool {
	return slices.ContainsFunc(w.CronJob.Status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
}

func activeRun(job *batchv1.Job) ActiveRun {
	run := ActiveRun{Job: job.Name, Started: pointer(job.Status.StartTime)}
	if at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		run.Scheduled = new(wire.Time(at))
	}
	switch {
	case job.DeletionTimestamp != nil:
		run.State = "is being deleted"
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		run.State = "is suspended"
	default:
		run.State = fmt.Sprintf("pods: active %d, succeeded %d, failed %d", job.Status.Active, job.Status.Succeeded, job.Status.Failed)
	}
	return run
}

func pointer(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(wire.Time(t.Time))
}

func endedRun(job *batchv1.Job) EndedRun {
	c := wire.FinishedCondition(job)
	return EndedRun{Job: job.Name, ByHand: !wire.IsRun(job), Outcome: string(c.Type), Reason: cmp.Or(c.Reason, "no reason given"), Ended: wire.Time(c.LastTransitionTime.Time)}
}

// engineFacts adds what the engine says of skipped runs, of waits, and of Jobs that are
// kept.
func (w *cronWork) engineFacts() {
	e := w.resp.GetExplanation()
	for _, wait := range e.GetWaits() {
		if wait.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_SCHEDULE && proto.Equal(wait.GetUntil(), e.GetNextScheduleTime()) {
			continue // It is in the list of the next runs.
		}
		out := Wait{For: cmp.Or(wait.GetDetail(), decidedBecause(e))}
		if until := wait.GetUntil(); until != nil {
			out.Until = new(wire.Time(until.AsTime()))
		}
		w.Waits = append(w.Waits, out)
	}
	w.SkippedTotal = e.GetSkippedTotal()
	for _, s := range e.GetSkipped() {
		w.Skipped = append(w.Skipped, SkippedRun{wire.Time(s.GetScheduledTime().AsTime()), s.GetDetail()})
	}
	for _, k := range e.GetKept() {
		w.Kept = append(w.Kept, Note{k.GetName(), k.GetDetail()})
	}
	for _, r := range e.GetRules() {
		w.Rules = append(w.Rules, Rule{r.GetRule().Name(), r.GetDecided(), r.GetDetail()})
	}
}

// settings lists the spec, the annotations that say something to jobpolicy, and the options.
func (w *cronWork) settings() {
	spec := &w.CronJob.Spec
	zone := "in " + w.plan.Clock()
	if zone == "in UTC" && w.plan.Zone == "" {
		zone += "; spec.timeZone is not set"
	}
	w.set("schedule", spec.Schedule, zone)
	switch policy := cmp.Or(spec.ConcurrencyPolicy, batchv1.AllowConcurrent); policy {
	case batchv1.ForbidConcurrent:
		w.set("concurrencyPolicy", string(policy), "a run waits until those before have ended")
	case batchv1.ReplaceConcurrent:
		w.set("concurrencyPolicy", string(policy), "a run ends those before it")
	default:
		w.set("concurrencyPolicy", string(policy), "runs may overlap")
	}
	if seconds := spec.StartingDeadlineSeconds; seconds != nil {
		w.set("startingDeadlineSeconds", fmt.Sprint(*seconds), "a run that is later does not start")
	} else {
		w.set("startingDeadlineSeconds", "not set", "a run may start however late")
	}
	w.set("history limits", fmt.Sprintf("%s complete, %s failed", limit(spec.SuccessfulJobsHistoryLimit), limit(spec.FailedJobsHistoryLimit)), "so many Jobs are kept")
	for _, name := range slices.Sorted(maps.Keys(w.CronJob.Annotations)) {
		if meaning, ok := cronAnnotations[name]; ok {
			w.set(name, w.CronJob.Annotations[name], meaning)
		}
	}
	w.options()
}

// options lists the options that are set, and where they are.
func (w *cronWork) options() {
	policy, problems := wire.PolicySpec(w.CronJob.Annotations)
	o := OptionsOf(originOf(w.OptionsFrom, w.CronJob.Namespace, w.CronJob.Annotations), policy.GetCronJob(), len(problems) == 0)
	if o == nil {
		return
	}
	meaning := "where its options are"
	switch {
	case o.Unread:
		meaning += "; they cannot be read"
	case o.LastValid:
		meaning += "; they cannot be read, so the last valid ones count"
	}
	w.set("options", o.From, meaning)
	for _, option := range o.Set {
		w.set(option.Name, option.Value, cronOptions[strings.TrimPrefix(option.Name, "cronJob.")])
	}
}

func (w *cronWork) set(name, value, meaning string) {
	w.Settings = append(w.Settings, Setting{name, value, meaning})
}

func limit(n *int32) string {
	if n == nil {
		return "all"
	}
	return fmt.Sprint(*n)
}

// cronAnnotations are the annotations of a CronJob that say something to jobpolicy, beside its policy.
var cronAnnotations = map[string]string{
	wire.RunNow:           "one run starts now, once for each text",
	wire.CronJobManagedBy: "the controller that runs it, while spec.suspend is true",
	wire.NextScheduleTime: "when the next run is due, for programs",
	wire.CronJobSuspend:   "whether that controller starts no runs",
}

// cronOptions say what the options mean.
var cronOptions = map[string]string{
	"startJitterSeconds":      "a run starts up to so many seconds later",
	"repeatedHour":            "which run starts of two in an hour that the clock shows twice",
	"skippedHour":             "what becomes of a run in an hour that the clock leaves out",
	"missedBeforeEdit":        "what becomes of times before the schedule was changed",
	"suspendAfterFailures":    "it is suspended after so many failed runs in a row",
	"maxMissedRuns":           "how many missed runs start",
	"publishNextScheduleTime": "the annotation " + wire.NextScheduleTime + " says when the next run is due",
	"group":                   "all CronJobs of the namespace that name this group share so many active runs; those of the cluster, if its operator has set the group",
	"staggerSeconds":          "each run starts at an offset of up to so many seconds, the CronJob's own",
}

func newestFirst(events []corev1.Event) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return Seen(&b).Compare(Seen(&a)) })
}

// notes lists what is often misunderstood, if it applies to this CronJob now.
func (w *cronWork) notes() {
	spec, named := &w.CronJob.Spec, w.CronJob.Annotations[wire.CronJobManagedBy]
	for _, n := range []struct {
		applies bool
		topic   string
		text    string
	}{
		{
			named != "" && !w.handedOver(), wire.CronJobManagedBy,
			"It names the controller " + named + ", but spec.suspend is not true: beside the built-in controller, that one leaves the CronJob alone until it is.",
		},
		{
			named == "" && w.hasOptions(), "annotations",
			"Only jobpolicy reads the options under jobpolicy.dev/. The built-in controller does not know them.",
		},
		{
			len(w.Active) > 1 && cmp.Or(spec.ConcurrencyPolicy, batchv1.AllowConcurrent) == batchv1.AllowConcurrent, "concurrencyPolicy",
			"Runs overlap, because concurrencyPolicy is Allow, the default.",
		},
		{
			w.replacesEach(), "Replace",
			"No run has succeeded yet. With concurrencyPolicy Replace, a run that takes longer than the time to the next one is deleted, and none ever ends.",
		},
		{
			spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && (w.State == Waiting || len(w.Skipped) > 0), "Forbid",
			"concurrencyPolicy Forbid does not promise exactly one run for each time. Of the runs that come due while another one is active, " + w.plan.AfterActive() + ". In rare faults a run starts twice. The work must tolerate both.",
		},
		{
			len(w.Skipped) > 0 && w.State != Missed && w.plan.MissedRuns == 1, "missed runs",
			"If several runs are missed, only the latest of them can still start. The others are left out.",
		},
		{
			latest(w.Events, "TooManyMissedTimes") != nil, "TooManyMissedTimes",
			"The event says that more than 100 runs have been missed since the last one. It is no fault: of the missed runs, " + w.plan.AfterActive() + ".",
		},
		{
			w.dueBeforeEdit(), "edits",
			"The CronJob was edited after the time of the run that is due. Times of a new schedule that lie between the last run and the edit count as missed, and the latest of them starts at once; under jobpolicy, the option cronJob.missedBeforeEdit: Skip leaves them out.",
		},
		{
			len(w.ByHand) > 0, "UnexpectedJob",
			"Somebody created " + namesOf(w.ByHand) + " from this CronJob. concurrencyPolicy counts only the CronJob's own runs: they start beside such a Job, Replace does not delete it, and status.active does not list it. " +
				"The event UnexpectedJob says no more than that, and is no fault. When it has ended, it counts for the history limits and for lastSuccessfulTime.",
		},
		{
			w.unlisted() != "", "status.active",
			"status.active does not list " + w.unlisted() + ". By its annotations it is a run of this CronJob, and jobpolicy counts it for concurrencyPolicy. The built-in controller counts only Jobs that it has listed.",
		},
		{
			w.State == Suspended && len(w.Active) > 0, "suspend",
			"Suspending a CronJob does not end its active runs.",
		},
		{
			spec.JobTemplate.Spec.TTLSecondsAfterFinished != nil, "ttlSecondsAfterFinished",
			"The Job template has a time to live: Jobs may be deleted before the history limits apply.",
		},
	} {
		if n.applies {
			w.Notes = append(w.Notes, Note{n.topic, n.text})
		}
	}
}

// unlisted names the runs that have gone on for a while without being in status.active, such as
// copies of a run.
func (w *cronWork) unlisted() string {
	var runs []ActiveRun
	for _, job := range w.owned {
		if wire.FinishedCondition(job) == nil && wire.IsRun(job) && !w.listed(job) && w.Now.Sub(job.CreationTimestamp.Time) >= reactionTime {
			runs = append(runs, activeRun(job))
		}
	}
	return namesOf(runs)
}

// dueBeforeEdit reports whether a run is due whose time was over when the CronJob was edited last.
func (w *cronWork) dueBeforeEdit() bool {
	at := w.resp.GetCreate().GetScheduledTime()
	return at != nil && at.AsTime().Before(w.edited())
}

// replacesEach reports whether the CronJob may have replaced each of its runs: there were several, and no trace of an end.
func (w *cronWork) replacesEach() bool {
	const several = 3
	return w.CronJob.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent && w.CronJob.Status.LastSuccessfulTime == nil && len(w.Active) > 0 && len(w.Ended) == 0 &&
		w.schedule != nil && w.schedule.Count(w.CronJob.CreationTimestamp.Time, w.since()) >= several
}

// hasOptions reports whether the annotations ask jobpolicy for something.
func (w *cronWork) hasOptions() bool {
	return wire.HasPolicy(w.CronJob.Annotations) || w.CronJob.Annotations[wire.RunNow] != ""
}

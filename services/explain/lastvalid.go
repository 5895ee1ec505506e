package explain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
)

// noteOnLastValid says so if a started Job goes on with its last valid options.
func (w *work) noteOnLastValid() {
	spec, err := wire.JobSpec(w.Job)
	if err != nil || spec.GetOptions() == nil || len(spec.GetOptionProblems()) == 0 || !w.unfinished() || w.Job.Status.StartTime == nil {
		return
	}
	w.Report.Notes = append(w.Report.Notes, lastValidNote("Job", spec.GetOptionProblems()[0], w.Events, w.when))
}

// noteOnLastValid says so if the CronJob goes on with its last valid options.
func (w *cronWork) noteOnLastValid() {
	spec, problems := wire.PolicySpec(w.CronJob.Annotations)
	if spec == nil || len(problems) == 0 {
		return
	}
	w.Notes = append(w.Notes, lastValidNote("CronJob", problems[0], w.Events, w.when))
}

// lastValidNote says since when the options cannot be read, as far as events tell. An executor records one when that
// begins, and again if the problem changes.
func lastValidNote(kind, problem string, events []corev1.Event, when func(time.Time) string) Note {
	since := ""
	if e := latest(events, invalidPolicy); e != nil {
		since = " since " + when(began(e))
	}
	return Note{"last valid policy", fmt.Sprintf("The policy of the %s cannot be read%s (%s). The last valid one counts, which the annotation %s has: "+
		"correct the policy, or the annotation %s.", kind, since, problem, wire.LastValidPolicy, wire.Policy)}
}

// began is when an event happened first.
func began(e *corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return wire.Time(e.FirstTimestamp.Time)
	}
	return Seen(e)
}

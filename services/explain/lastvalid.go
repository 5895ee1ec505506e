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
	w.Report.Notes = append(w.Report.Notes, lastValidNote("Job", spec.GetOptionProblems()[0], w.Job.Annotations, w.Events, w.when))
}

// noteOnLastValid says so if the CronJob goes on with its last valid options.
func (w *cronWork) noteOnLastValid() {
	spec, problems := wire.PolicySpec(w.CronJob.Annotations)
	if spec == nil || len(problems) == 0 {
		return
	}
	w.Notes = append(w.Notes, lastValidNote("CronJob", problems[0], w.CronJob.Annotations, w.Events, w.when))
}

// lastValidNote says since when the options cannot be read, as far as events tell. An executor records one when that
// begins, and again if the problem changes. Without an event, a JobPolicy that could not be read here may be one that the executor
// reads: whoever explains may lack the right.
func lastValidNote(kind, problem string, annotations map[string]string, events []corev1.Event, when func(time.Time) string) Note {
	since, e := "", latest(events, invalidPolicy)
	if e != nil {
		since = " since " + when(began(e))
	}
	if name, named := wire.PolicyName(annotations); named && e == nil {
		return Note{"last valid policy", fmt.Sprintf("The JobPolicy %s could not be read here, so this follows the last valid one, which the annotation %s has. "+
			"So does the executor if it cannot read the JobPolicy either: see whether it is there and valid.", name, wire.LastValidPolicy)}
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

package world

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/writes"
	"jobpolicy.dev/services/explain"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// compare compares a write with what was said.
func (r *reader) compare(w *apiserver.Write) {
	if w.Resource != "jobs" && w.Resource != "pods" {
		return
	}
	for _, uid := range r.concerned(w) {
		j := r.jobs[uid]
		if j == nil || j.said == nil {
			continue
		}
		if p, ok := w.Old.(*corev1.Pod); ok && !selects(j.job, p) {
			continue // It is given up: the Job's own pods are others.
		}
		if isExecutor(w.By) {
			r.acted(j, w, kindOf(w))
			continue
		}
		r.passed(j, w.Time)
	}
}

// slack is how much earlier or later than said something may happen: the API has times in
// whole seconds, and a request takes a moment.
const slack = 2 * time.Second

// acted checks an executor's next act, a write of this kind, against what was said.
func (r *reader) acted(j *restingJob, w *apiserver.Write, kind string) {
	now := w.Time
	switch n := j.said.Next; {
	case kind == "remove" && (told(j.said, "history limits") || told(j.said, "concurrencyPolicy")):
		r.tally["removed by its CronJob"]++
	case n != nil && (n.OrLater || j.said.State == explain.Blocked) && kind == "condition" && endsNow(j, w):
		r.tally["deadline before a pod"]++
	case n != nil && kind == "status" && j.mayComeLater(now) && (j.waitEnds(now) || r.podIsOverdue(j, now)):
		r.tally["a wait that ends before"]++
	case j.saidRefused(kind):
		r.tally[kind+" no longer refused"]++
	case n == nil:
		r.wrongly(j, now, "nothing happens by itself, and %s did: %s", w.By, describeWrite(w))
	case !slices.ContainsFunc(n.Steps, func(s explain.Step) bool { return s.Kind == kind }):
		r.wrongly(j, now, "%s was told, and another thing came: %s", n.Steps, describeWrite(w))
	case n.At == nil:
		r.tally[kind+" at once"]++
	case n.At.Sub(now) > slack && !n.OrEarlier || now.Sub(*n.At) > r.late(n) && !(kind == "create" && j.meddled && now.Sub(*n.At) < longestDelay):
		r.wrongly(j, now, "%s was told for %s, and %s came: %s", n.Steps, n.At.Sub(j.saidAt), now.Sub(j.saidAt), describeWrite(w))
	default:
		r.tally[kind+" at its time"]++
	}
}

// mayComeLater reports whether what was told need not have come by now.
func (j *restingJob) mayComeLater(now time.Time) bool {
	n := j.said.Next
	return n.OrLater || n.Refused || n.At != nil && now.Sub(*n.At) <= slack
}

// tried reads an executor's event that the API server refused a pod of the Job. If it was not said that pods are refused,
// that is the creation that was to come, and the Job stands still for a new reason.
func (r *reader) tried(j *restingJob, w *apiserver.Write) {
	if j.said == nil || j.said.Next != nil && j.said.Next.Refused {
		return
	}
	r.acted(j, w, "create")
	j.touched, j.said = w.Time, nil
}

// saidRefused reports whether the report says that the API server refuses such a write.
func (j *restingJob) saidRefused(kind string) bool {
	return slices.ContainsFunc(j.said.Refused, func(refusal explain.Refused) bool {
		switch refusal.Write {
		case writes.DeletePod:
			return kind == "delete"
		case writes.ReleasePod:
			return kind == "status"
		case writes.UpdateStatus:
			return kind == "status" || kind == "condition"
		case writes.DeleteJob:
			return kind == "remove"
		}
		return false
	})
}

// waitEnds reports whether the report names a wait that ends about now, such as that for a pod that does not end.
func (j *restingJob) waitEnds(now time.Time) bool {
	return slices.ContainsFunc(j.said.Waits, func(w explain.Wait) bool { return w.Until != nil && now.Sub(*w.Until).Abs() <= slack })
}

// podIsOverdue reports whether the termination deadline of one of the Job's pods passes about now. The report names only the
// first pod whose deadline comes.
func (r *reader) podIsOverdue(j *restingJob, now time.Time) bool {
	deadline := time.Duration(optionsOf(j.job).TerminationDeadlineSeconds) * time.Second
	for _, p := range r.pods {
		if deadline > 0 && controllerUID(p) == j.job.UID && p.DeletionTimestamp != nil && now.Sub(p.DeletionTimestamp.Add(deadline)).Abs() <= slack {
			return true
		}
	}
	return false
}

// late is how much later than said something may happen.
func (r *reader) late(n *explain.Next) time.Duration {
	if n.OrLater || n.Refused {
		return longestDelay + slack + r.behind
	}
	return slack + r.behind
}

// endsNow reports whether a write fails the Job as one of the ends that the report dates about now. While the
// creation of a pod is blocked or may come later, a deadline may come first.
func endsNow(j *restingJob, w *apiserver.Write) bool {
	job, ok := w.New.(*batchv1.Job)
	if !ok {
		return false
	}
	for _, c := range job.Status.Conditions {
		if c.Type != batchv1.JobFailureTarget {
			continue
		}
		for _, text := range j.said.Ends {
			date, is := strings.CutPrefix(text, "Failed ("+c.Reason+") at ")
			at, err := time.Parse(time.RFC3339, strings.TrimRight(strings.SplitN(date, " ", 2)[0], ","))
			if is && err == nil && w.Time.Sub(at).Abs() <= slack {
				return true
			}
		}
	}
	return false
}

// told reports whether a topic is among the notes.
func told(report *explain.Report, topic string) bool {
	return slices.ContainsFunc(report.Notes, func(n explain.Note) bool { return n.Topic == topic })
}

// passed checks what was said against the fact that nothing was done until now.
func (r *reader) passed(j *restingJob, now time.Time) {
	if j.said == nil || !r.managed(j.job) {
		return
	}
	n := j.said.Next
	if n != nil && n.At == nil && !n.OrLater && !j.meddled && !n.Refused {
		r.wrongly(j, now, "%s was told for now", n.Steps)
	}
	if n != nil && n.At != nil && n.At.Add(r.late(n)).Before(now) && !j.meddled {
		r.wrongly(j, now, "%s was told for %s, and did not come", n.Steps, n.At.Sub(j.saidAt))
		return
	}
	r.tally["nothing before"]++
}

// kindOf is the kind of step that a write belongs to.
func kindOf(w *apiserver.Write) string {
	switch {
	case w.Resource == "pods" && w.Old == nil:
		return "create"
	case w.Resource == "pods" && strings.HasPrefix(w.Verb, "delete"):
		return "delete"
	case w.Resource == "pods":
		return "status" // A finalizer is released.
	case strings.HasPrefix(w.Verb, "delete"):
		return "remove"
	}
	before, after := w.Old.(*batchv1.Job), w.New.(*batchv1.Job)
	for _, c := range after.Status.Conditions {
		if ledger.IsTrue(before, c.Type) != ledger.IsTrue(after, c.Type) {
			return "condition"
		}
	}
	return "status"
}

package world

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A sighting is a write by which every executor that watches notices a second controller on
// a Job: somebody else created a pod for the Job, or counted its pods in the status.
type sighting struct {
	on *jobRecord
	at time.Time
}

// secondWrote records what others do to managed Jobs that only a Job controller does.
func (j *judge) secondWrote(w apiserver.Write) {
	r := j.jobs[w.UID]
	noticed := countsPods(w)
	if pod, ok := podOf(w); ok {
		r = j.jobs[controllerUID(pod)]
		noticed = w.Old == nil
	}
	// An executor may still see a Job that was deleted a moment ago.
	if !j.noticing || r == nil || r.gone && j.old(r.goneAt) || !j.managed(r.job) || !noticed && !j.second(w.By) {
		return
	}
	// Times of statuses have whole seconds: a second status within one is not noticed.
	if noticed && !r.gone && (w.Resource == "pods" || w.Time.Unix() > r.secondAt.Unix()) {
		j.sightings = append(j.sightings, sighting{r, w.Time})
	}
	r.secondAt, j.secondAt = w.Time, w.Time
}

// countsPods reports whether a status sets a count or a time that only a Job controller
// knows. The API server does not record who removes one.
func countsPods(w apiserver.Write) bool {
	was, ok1 := w.Old.(*batchv1.Job)
	is, ok2 := w.New.(*batchv1.Job)
	if !ok1 || !ok2 || w.Subresource != "status" {
		return false
	}
	a, b := &was.Status, &is.Status
	return b.Active != 0 && b.Active != a.Active || b.Succeeded != 0 && b.Succeeded != a.Succeeded || b.Failed != 0 && b.Failed != a.Failed ||
		sets(a.Ready, b.Ready) || sets(a.Terminating, b.Terminating) || a.StartTime == nil && b.StartTime != nil || a.CompletionTime == nil && b.CompletionTime != nil
}

func sets(before, after *int32) bool { return after != nil && (before == nil || *before != *after) }

// podOf is the pod that a write is about.
func podOf(w apiserver.Write) (*corev1.Pod, bool) {
	if pod, ok := w.New.(*corev1.Pod); ok {
		return pod, true
	}
	pod, ok := w.Old.(*corev1.Pod)
	return pod, ok
}

// eventWritten: there is one event about a second controller on a Job, and only if there is
// such a controller.
func (j *judge) eventWritten(w apiserver.Write, ours bool) {
	event, ok := w.New.(*corev1.Event)
	if !ours || !ok || event.Reason != executor.SecondControllerEventReason {
		return
	}
	r := j.jobs[event.InvolvedObject.UID]
	switch {
	case r == nil || r.secondAt.IsZero():
		j.breach("second", w.Key, w.UID, "an event of %s tells of a second controller on Job %s, and there is none: %s", w.By, event.InvolvedObject.Name, event.Message)
	case event.Count > 1:
		j.breach("second", r.key, r.uid, "an event of %s tells again of a second controller on the Job, and once is enough", w.By)
	}
}

// says is called when an executor logs that a second controller works on a Job. The event
// about it may be refused.
func (j *judge) says(by string, job types.UID, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	r := j.jobs[job]
	switch {
	case r == nil || r.secondAt.IsZero():
		j.breach("second", types.NamespacedName{}, job, "%s says that a second controller works on the Job, and none does", by)
		return
	case !r.said[by].IsZero() && now.Sub(r.said[by]) < executor.SecondControllerQuiet:
		j.breach("second", r.key, r.uid, "%s says again that a second controller works on the Job, and once is enough", by)
	}
	if r.said == nil {
		r.said = map[string]time.Time{}
	}
	r.said[by] = now
}

// judgeStandDown: an executor that stands down writes nothing of a Job on which it noticed a
// second controller, until that controller has touched no managed Job for a while. It still
// releases the pods of a Job that has ended.
func (j *judge) judgeStandDown(w apiserver.Write, r *jobRecord) {
	if !j.standDown || w.Verb == "delete" && w.Resource == "jobs" || r.gone || finished(r.job) != "" {
		return
	}
	if at, ok := j.noticed(r, w.By); ok && w.Time.Before(j.standsDownUntil()) {
		j.breach("second", r.key, r.uid, "%s wrote (%s %s %s) a Job on which a second controller works, and must stand down: it has noticed this since %s",
			w.By, w.Verb, w.Resource, w.Key.Name, w.Time.Sub(at))
	}
}

// noticed is when an executor must have noticed a second controller on the Job at the
// latest; ok is false if it need not have.
func (j *judge) noticed(r *jobRecord, by string) (at time.Time, ok bool) {
	for _, s := range j.sightings {
		if r.gone && r.goneAt.Sub(s.at) < j.lag {
			continue // It may be gone before the executor sees it.
		}
		if s.on == r && !j.writer(by).asked.IsZero() && j.writer(by).asked.Before(s.at) && j.old(s.at) {
			return s.at, true
		}
	}
	return time.Time{}, false
}

// standsDownUntil is the time until which executors surely leave Jobs to the second
// controller.
func (j *judge) standsDownUntil() time.Time {
	for _, s := range slices.Backward(j.sightings) {
		if j.old(s.at) {
			return s.at.Add(executor.SecondControllerQuiet)
		}
	}
	return time.Time{}
}

// leftAloneUntil is the time until which executors may leave the Job to a second controller,
// or may be late because of it.
func (j *judge) leftAloneUntil(r *jobRecord) time.Time {
	switch {
	case r.secondAt.IsZero():
		return time.Time{}
	case j.standDown:
		return j.secondAt.Add(executor.SecondControllerQuiet + j.lag)
	}
	return r.secondAt.Add(recovers)
}

// judgeUnsaid: at the end, each executor that still runs has logged each Job on which a
// second controller worked while the executor watched.
func (j *judge) judgeUnsaid(now time.Time, running []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	for _, by := range running {
		if j.writers[by] == nil {
			continue // It has never led.
		}
		for _, uid := range sortedUIDs(j.jobs) {
			r := j.jobs[uid]
			if at, ok := j.noticed(r, by); ok && r.said[by].IsZero() {
				j.breach("second", r.key, r.uid, "a second controller worked on the Job at %s, and %s has not said so", at.UTC().Format(time.RFC3339Nano), by)
			}
		}
	}
}

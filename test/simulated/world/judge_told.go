package world

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// died is called when an executor's process ends. The events that it was about to send are lost.
func (j *judge) died(by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writer(by).died = true
}

// untold is called when an event of an executor failed at the API server or in the network.
func (j *judge) untold(by string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writer(by).untold = append(j.writer(by).untold, now)
}

// unanswered is called when an executor cannot know whether its write of a Job took effect. The
// creation of a Job has no name.
func (j *judge) unanswered(by string, job types.NamespacedName, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	who := j.writer(by)
	if who.unanswered == nil {
		who.unanswered = map[types.NamespacedName]time.Time{}
	}
	who.unanswered[job] = now
}

// endTold: there is one event about the end of a Job, after the end, from the executor that
// wrote the end.
func (j *judge) endTold(w apiserver.Write, ours bool) {
	event, ok := w.New.(*corev1.Event)
	if !ours || !ok || event.InvolvedObject.Kind != "Job" {
		return
	}
	r := j.jobs[event.InvolvedObject.UID]
	if r == nil || event.Reason != r.endReason() {
		return
	}
	if r.endTold == nil {
		r.endTold = map[string]int{}
	}
	r.endTold[w.By] = max(r.endTold[w.By]+1, int(event.Count))
	switch {
	case r.endTold[w.By] > 1:
		j.breach("event", r.key, r.uid, "an event of %s tells again that the Job is %s (%s), and once is enough", w.By, finished(r.job), event.Reason)
	case w.By != r.finishedBy && !j.mayHaveEnded(r, w.By):
		j.breach("event", r.key, r.uid, "an event of %s tells that the Job is %s (%s), and that is for %s, which wrote it", w.By, finished(r.job), event.Reason, r.finishedBy)
	}
}

// mayHaveEnded reports whether an executor may take the end of a Job, which another one wrote,
// for its own: a status of its own has got no answer since the end. If both decided in
// the same second, nothing distinguishes the conditions that they wrote.
func (j *judge) mayHaveEnded(r *jobRecord, by string) bool {
	at, failed := j.writer(by).unanswered[r.key]
	return failed && !at.Before(condition(r.job, finished(r.job)).LastTransitionTime.Add(-j.fastest))
}

// endReason is the reason of the event about the end of the Job; empty if it has not ended.
func (r *jobRecord) endReason() string {
	for _, c := range r.job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return "Completed"
		case c.Type == batchv1.JobFailed:
			return c.Reason
		}
	}
	return ""
}

// judgeEndTold: there is an event about the end of a Job that an executor has declared, unless
// the executor died, or the event failed on its way.
func (j *judge) judgeEndTold(r *jobRecord) {
	if !j.executors(r.finishedBy) || len(r.endTold) > 0 || !j.settled(r.finishedAt) {
		return
	}
	by := j.writer(r.finishedBy)
	if by.died {
		return
	}
	for _, at := range by.untold {
		if !at.Before(r.finishedAt) {
			return
		}
	}
	j.breach("event", r.key, r.uid, "%s wrote that the Job is %s, and no event tells it", r.finishedBy, finished(r.job))
}

// startTold: an executor tells at most once of a run of a CronJob that it has started, and of no
// other run. (If the answer is lost and the watch shows the run, it tells nothing.) If its
// creation of a Job has got no answer, it may take another one's Job for its own.
func (j *judge) startTold(w apiserver.Write, ours bool) {
	event, ok := w.New.(*corev1.Event)
	if !ours || !ok || event.Reason != "SuccessfulCreate" {
		return
	}
	c := j.crons[event.InvolvedObject.UID]
	_, job, ok := strings.Cut(event.Message, "Created job ")
	if c == nil || !ok {
		return
	}
	if _, unknown := j.writer(w.By).unanswered[types.NamespacedName{Namespace: c.key.Namespace}]; unknown {
		return
	}
	started := 0
	for _, r := range c.jobs {
		if r.key.Name == job && r.createdBy == w.By {
			started++
		}
	}
	of := startEvent{w.By, job}
	if c.told[of]++; c.told[of] > started {
		j.breach("event", c.key, c.uid, "%s tells %d times that it has created Job %s, and it did %d times", w.By, c.told[of], job, started)
	}
}

// firstStatusDelay is how long executors wait with a first status that only says that a Job is
// suspended.
const firstStatusDelay = 100 * time.Millisecond

// judgeFirstStatus: a client that creates a Job suspended may update it at once. After a status,
// the API server would refuse the update, so a first status that only says that the Job is
// suspended waits for firstStatusDelay. An engine of an earlier contract does not know this rule.
func (j *judge) judgeFirstStatus(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	if j.podjob || w.Time.Sub(r.created) >= firstStatusDelay || !j.troubledAt.Before(r.created) || !j.always(r, suspended) || len(r.live) > 0 || len(r.departed) > 0 {
		return
	}
	if len(r.job.Status.Conditions) == 0 && onlySuspended(&next.Status) {
		j.breach("status", r.key, r.uid, "%s wrote %s after the Job was created that it is suspended, and must wait for %s", w.By, w.Time.Sub(r.created), firstStatusDelay)
	}
}

// onlySuspended reports whether a status says no more than that the Job is suspended.
func onlySuspended(s *batchv1.JobStatus) bool {
	return s.StartTime == nil && len(s.Conditions) == 1 && s.Conditions[0].Type == batchv1.JobSuspended && s.Conditions[0].Status == corev1.ConditionTrue
}

package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// The metrics that are judged, by their names and reasons.
const (
	managedJobs     = "jobpolicy_managed_jobs"
	withoutProgress = "jobpolicy_job_without_progress_seconds"
	withoutRetries  = "jobpolicy_jobs_without_retries"
	hinderedPods    = "jobpolicy_hindered_pods "
	managedCronJobs = "jobpolicy_managed_cronjobs"
	missedDeadline  = "jobpolicy_missed_run_cronjobs starting_deadline"
	missedForbidden = "jobpolicy_missed_run_cronjobs concurrency_policy"
	nextRunTime     = "jobpolicy_next_schedule_time_seconds"
)

// metered are all of them, with the reasons that pods of worlds have.
var metered = []string{
	managedJobs, withoutProgress, withoutRetries, managedCronJobs, missedDeadline, missedForbidden, nextRunTime,
	hinderedPods + "Unschedulable", hinderedPods + "ImagePullBackOff", hinderedPods + "CreateContainerConfigError",
}

// afterRestart follows the name of a metric that an executor told after another one had ended.
const afterRestart = " after a restart"

// An advance says since when a Job has stood still, by what the API server has stored.
type advance struct {
	// counted is when a count of ended pods or the start time last changed, changed when anything last did
	// that says whether the Job makes progress, or is to make any.
	counted, changed time.Time
}

// observe is called with each write of the Job.
func (s *advance) observe(w apiserver.Write, old, next *batchv1.Job) {
	a, b := &old.Status, &next.Status
	if a.Succeeded != b.Succeeded || a.Failed != b.Failed || !a.StartTime.Equal(b.StartTime) {
		s.counted, s.changed = w.Time, w.Time
	}
	if valueOr(a.Ready, 0) != valueOr(b.Ready, 0) || old.Generation != next.Generation || decided(old) != decided(next) {
		s.changed = w.Time
	}
}

// bounds are what metrics say at least and at most. They differ by objects to which something happened lately.
type bounds struct{ least, most map[string]float64 }

func (b bounds) add(series string, n float64, sure bool) {
	if b.most[series] += n; sure {
		b.least[series] += n
	}
}

// longest takes a time into account; the metric is the longest one.
func (b bounds) longest(series string, least, most time.Duration) {
	b.least[series], b.most[series] = max(b.least[series], least.Seconds()), max(b.most[series], most.Seconds())
}

// judgeMetrics compares the metrics of an executor with what is stored, unless something has failed lately: then its
// views and its last decisions may be older.
func (j *judge) judgeMetrics(by string, got reading, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	j.passTime()
	if !j.quiet(by) {
		return
	}
	want, next := bounds{map[string]float64{}, map[string]float64{}}, nextRuns{}
	for _, uid := range sortedUIDs(j.jobs) {
		j.meterJob(want, j.jobs[uid], by)
	}
	for _, uid := range sortedUIDs(j.crons) {
		j.meterCron(want, &next, j.crons[uid])
	}
	next.bound(want)
	for _, series := range metered {
		n, is := got[series]
		least, most := want.least[series], want.most[series]
		if is && n > most || n < least {
			j.report(said{"metrics", series + by, ""}, types.NamespacedName{Name: by}, sprint("%s is %v (there: %t), and by what is stored it is %v to %v", series, n, is, least, most))
		}
		if least > 0 {
			j.compared[series] = true
			if j.restarted(by) {
				j.compared[series+afterRestart] = true
			}
		}
	}
}

// restarted reports whether another executor was active before.
func (j *judge) restarted(by string) bool {
	for name, who := range j.writers {
		if name != by && who.began.Before(j.writers[by].began) {
			return true
		}
	}
	return false
}

// quiet reports whether nothing keeps an executor from knowing what is stored: nothing fails, no clock is wrong, it leads,
// and has read all objects and asked about them.
func (j *judge) quiet(by string) bool {
	who := j.writers[by]
	if who == nil || who.died || j.troubled() || j.askew() > 0 || j.elected && j.holder != by || j.now.Sub(who.began) < begins+2*j.calmLag {
		return false
	}
	for _, until := range j.hindrances {
		if j.now.Before(until) {
			return false
		}
	}
	return true
}

// still reports whether nothing has happened to a Job and its pods lately.
func (j *judge) still(r *jobRecord) bool {
	for _, at := range []time.Time{
		r.created, r.lastStimulus, r.lastOurs, r.touched, j.touched[r.key.Namespace], r.goneAt, j.leftAloneUntil(r), r.clockSeen,
	} {
		if !j.old(at) {
			return false
		}
	}
	return !r.clockUnseen && !j.namespaceGoes(r)
}

// meterJob adds what metrics say of a Job.
func (j *judge) meterJob(want bounds, r *jobRecord, by string) {
	sure := j.still(r)
	if !j.managed(r.job) || sure && (r.gone || finished(r.job) != "") {
		return
	}
	want.add(managedJobs, 1, sure)
	j.meterRetries(want, r, sure)
	j.meterProgress(want, r, sure, by)
	j.meterHindered(want, r, sure)
}

// meterRetries: a Job without a verdict of which a pod has failed has no retry left if its limit is used up, by all
// that ever failed, whether they are there or not.
func (j *judge) meterRetries(want bounds, r *jobRecord, sure bool) {
	failed := r.job.Status.Failed
	sure = sure && !r.tampered && len(uncounted(&r.job.Status)) == 0
	for _, p := range r.live {
		sure = sure && !(holds(p.pod) && !p.active()) // It may count as failed, or not yet.
	}
	if !sure || failed > 0 && failed >= valueOr(r.job.Spec.BackoffLimit, 6) && decided(r.job) == "" {
		want.add(withoutRetries, 1, sure)
	}
}

// meterProgress: a Job stands still since its counts, its start or its number of ready pods last changed, as somebody who
// looks from time to time notices.
func (j *judge) meterProgress(want bounds, r *jobRecord, sure bool, by string) {
	s := &r.job.Status
	wants := finished(r.job) == "" && decided(r.job) == "" && r.job.DeletionTimestamp == nil && !suspended(r.job) && valueOr(r.job.Spec.Parallelism, 1) > 0 && valueOr(s.Ready, 0) == 0
	if sure && !wants {
		return
	}
	since := latest(r.created, r.advance.counted)
	if r.tampered || !j.old(since) {
		since = r.created
	}
	if start := s.StartTime; start != nil && s.Succeeded == 0 && s.Failed == 0 && start.Time.Before(since) {
		since = start.Time
	}
	most := j.now.Sub(since.Truncate(time.Second))
	if !sure {
		want.longest(withoutProgress, 0, most)
		return
	}
	noticed := latest(latest(r.created, r.advance.changed), j.heldUntil(r))
	if s.Succeeded > 0 || s.Failed > 0 { // Nothing says when its pods ended.
		noticed = latest(noticed, j.writer(by).began.Add(begins))
	}
	want.longest(withoutProgress, j.now.Sub(noticed.Add(j.metersEvery+j.lag)), most)
}

// meterHindered: the pods of a Job that cannot start count under the reason that most of them have.
func (j *judge) meterHindered(want bounds, r *jobRecord, sure bool) {
	reasons, all, most := map[string]int{}, 0, ""
	for _, p := range j.inSight(r) {
		reason := hinderedBy(p.pod)
		if reason == "" || sure && (!p.active() || !r.selects(p.pod) || p.job != r) {
			continue
		}
		all++
		if reasons[reason]++; reasons[reason] > reasons[most] {
			most = reason
		}
	}
	for reason, n := range reasons {
		switch {
		case !sure || reason != most && n == reasons[most]:
			sure = false
		case reason != most:
			delete(reasons, reason)
		}
	}
	if !sure {
		all += len(r.live)
		reasons = map[string]int{"Unschedulable": 1, "ImagePullBackOff": 1, "CreateContainerConfigError": 1}
	}
	for reason := range reasons {
		want.add(hinderedPods+reason, float64(all), sure)
	}
}

// hinderedBy is what keeps a pod from starting, in the words of scheduler and kubelet; empty if nothing does.
func hinderedBy(pod *corev1.Pod) string {
	if ledger.Ended(pod) {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		for _, words := range problemReasons {
			if waiting := s.State.Waiting; waiting != nil && waiting.Reason == words.Reason {
				return waiting.Reason
			}
		}
	}
	return ""
}

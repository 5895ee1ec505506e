package world

import (
	"math"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// jobOptions are the options of a Job that the Kubernetes API does not have, as they are
// written. A user of a world may make them unreadable; then the last valid ones count (judgeLastValid).
type jobOptions struct {
	RetryDelay *struct {
		InitialSeconds, MaxSeconds, JitterPercent, QuotaMaxSeconds int
		Factor                                                     float64
		DelaysSeconds                                              []int
	}
	StartDeadlineSeconds, TryDeadlineSeconds, TerminationDeadlineSeconds int64
	TerminationDeadlineNode                                              string
	KeepFinishedPods                                                     *keptFinished
	WhenJobFails                                                         string
	NeverStarted                                                         []struct {
		Problem, Action string
		AfterSeconds    int
	}
}

func optionsOf(job *batchv1.Job) (o jobOptions) {
	text := job.Annotations[wire.Policy]
	if text == unreadable {
		text = job.Annotations[wire.LastValidPolicy]
	}
	if text == "" {
		return o
	}
	if read, ok := readOptions.Load(text); ok {
		return read.(jobOptions)
	}
	policy := struct{ Job *jobOptions }{&o}
	if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
		panic(err)
	}
	readOptions.Store(text, o)
	return o
}

// readOptions are the options by the texts that judges have read: they ask at each write, and change nothing in them.
var readOptions sync.Map

// delays are the shortest and the longest time that a Job may wait after so many failures.
func (j *judge) delays(r *jobRecord, failures int) (least, most time.Duration) {
	own := optionsOf(r.job).RetryDelay
	if own == nil || failures <= 0 {
		least = j.delayAfter(failures)
		return least, least
	}
	first, longest, factor := j.firstDelay.Seconds(), j.longestDelay.Seconds(), 2.0
	if own.InitialSeconds > 0 {
		first = float64(own.InitialSeconds)
	}
	if own.MaxSeconds > 0 {
		longest = float64(own.MaxSeconds)
	}
	if own.Factor > 0 {
		factor = own.Factor
	}
	seconds := min(longest, first*math.Pow(factor, float64(failures-1)))
	if n := len(own.DelaysSeconds); n > 0 {
		seconds = float64(own.DelaysSeconds[min(failures, n)-1])
	}
	least = time.Duration(seconds*1e6) * time.Microsecond
	return least, least + least*time.Duration(own.JitterPercent)/100
}

// leastDelay is the shortest time that a Job may wait after so many failures, mostDelay the longest.
func (j *judge) leastDelay(r *jobRecord, failures int) time.Duration {
	least, _ := j.delays(r, failures)
	return least
}

func (j *judge) mostDelay(r *jobRecord, failures int) time.Duration {
	_, most := j.delays(r, failures)
	return most
}

// growsUntil is the number of failures from which on the delay grows no more.
func (j *judge) growsUntil(r *jobRecord) int {
	own := optionsOf(r.job).RetryDelay
	if own != nil && (len(own.DelaysSeconds) > 0 || own.Factor > 0 && own.Factor < 2) {
		return 20 // 10 s and 300 s: nine with the factor 1.5.
	}
	for n := 1; ; n++ {
		if j.leastDelay(r, n) >= j.leastDelay(r, n+1) {
			return n
		}
	}
}

// startDeadline is when the Job fails if no pod has run; ok is false if it has no such deadline, or
// none that runs.
func (r *jobRecord) startDeadline() (at time.Time, ok bool) {
	seconds, start := optionsOf(r.job).StartDeadlineSeconds, r.job.Status.StartTime
	if seconds == 0 || start == nil || suspended(r.job) {
		return time.Time{}, false
	}
	return start.Add(time.Duration(seconds) * time.Second), true
}

// startDeadlineMissing: the deadline must have passed, and no pod have run that the executor must
// know, also if it is gone. Who has taken its finalizer has hidden what became of it.
func (j *judge) startDeadlineMissing(r *jobRecord, by string) string {
	at, ok := r.startDeadline()
	if now := j.now.Add(j.askew()); !ok || now.Before(at) {
		return sprint("the deadline to start does not run (%t), or is %s", ok, at)
	}
	for _, uid := range sortedUIDs(j.pods) {
		p := j.pods[uid]
		if p.job != r || !r.ranSinceStart(p) || p.excuse != "" || p.revivals > 0 || !p.strayAt.IsZero() || !r.selects(p.pod) {
			continue
		}
		if j.knows(by, p.ranAt) && j.shownOf(r, p, by) && (p.released.at.IsZero() || j.executors(p.released.by)) {
			return sprint("pod %s ran at %s", p.key.Name, p.ranAt)
		}
	}
	return ""
}

// ranSinceStart reports whether the pod has run since the Job started or last resumed.
func (r *jobRecord) ranSinceStart(p *podRecord) bool {
	start := r.job.Status.StartTime
	return start != nil && !p.ranAt.IsZero() && !p.ranAt.Before(latest(start.Time, r.resumedAt()))
}

// resumedAt is when the Job was last resumed; the status has it in whole seconds only.
func (r *jobRecord) resumedAt() (at time.Time) {
	for _, e := range r.earlier {
		if suspended(e.job) {
			at = e.until
		}
	}
	return at
}

// neverStarted reports whether no pod of the Job that anybody could see has run since it started.
func (j *judge) neverStarted(r *jobRecord) bool {
	for _, p := range j.pods {
		if (p.job == r || r.had(p)) && !p.ranAt.IsZero() {
			return false
		}
	}
	return true
}

// hasRun reports whether this version of a pod shows that one of its containers has run.
func hasRun(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.RestartCount > 0 || s.State.Terminated != nil && !s.State.Terminated.FinishedAt.IsZero() {
			return true
		}
	}
	return false
}

// judgeTryDeadline: a new pod may be active as long as the options say, or the template if that is
// shorter.
func (j *judge) judgeTryDeadline(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	want := r.job.Spec.Template.Spec.ActiveDeadlineSeconds
	if try := optionsOf(r.job).TryDeadlineSeconds; try > 0 && (want == nil || *want > try) {
		want = &try
	}
	if got := pod.Spec.ActiveDeadlineSeconds; valueOr(got, 0) != valueOr(want, 0) {
		j.breach("options", r.key, r.uid, "%s created pod %s that may be active for %d s, and the options and the template say %d s (0: for ever)",
			w.By, w.Key.Name, valueOr(got, 0), valueOr(want, 0))
	}
}

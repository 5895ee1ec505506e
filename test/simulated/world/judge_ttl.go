package world

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/annotation"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// expires is when a finished Job's time to live is over: by the annotation for its
// outcome, else its spec, else its namespace. ok is false if the Job has none.
func (j *judge) expires(job *batchv1.Job) (at time.Time, ok bool) {
	terminal := condition(job, finished(job))
	if terminal == nil || terminal.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	ttl, ok := j.timeToLive(job)
	return terminal.LastTransitionTime.Add(ttl), ok
}

func (j *judge) timeToLive(job *batchv1.Job) (time.Duration, bool) {
	name := annotation.TTLAfterComplete
	if finished(job) == batchv1.JobFailed {
		name = annotation.TTLAfterFailed
	}
	if ttl, ok := readSeconds(job.Annotations, name); ok {
		return ttl, true
	}
	if s := job.Spec.TTLSecondsAfterFinished; s != nil {
		return time.Duration(*s) * time.Second, true
	}
	if namespace := j.namespaces[job.Namespace]; namespace != nil {
		return readSeconds(namespace.Annotations, annotation.DefaultTTL)
	}
	return 0, false
}

func readSeconds(annotations map[string]string, name string) (time.Duration, bool) {
	n, err := strconv.ParseInt(annotations[name], 10, 64)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// expiryMissing says why the Job must not be deleted now by its time to live; empty if
// it may. A deletion names the exact version that the engine decided on, and an executor
// whose clock is ahead must not delete early.
func (j *judge) expiryMissing(_ apiserver.Write, r *jobRecord) string {
	if finished(r.job) == "" {
		return "it is not finished"
	}
	if !j.managed(r.job) && !j.replacesBuiltin() {
		return "somebody else manages it"
	}
	at, ok := j.expires(r.job)
	if !ok {
		return "nothing limits its time to live"
	}
	if left := at.Sub(j.now); left > 0 {
		return sprint("it has %s left to live", left)
	}
	return ""
}

// expiryLook is how long an executor may take to check a Job again if it compared the Job's
// time to live with a clock that was behind.
const expiryLook = 10 * time.Minute

// judgeExpired: at rest, a Job past its time to live is gone.
func (j *judge) judgeExpired(r *jobRecord) {
	if r.gone || r.job.DeletionTimestamp != nil || (!j.managed(r.job) && !j.replacesBuiltin()) {
		return
	}
	at, ok := j.expires(r.job)
	most := settles
	if j.slowest < 0 {
		most += expiryLook
	}
	if over := j.now.Sub(latest(latest(at, j.calmSince), r.lastStimulus)); ok && over > most {
		j.breach("ttl", r.key, r.uid, "the Job is still there %s after its time to live was over", over)
	}
}

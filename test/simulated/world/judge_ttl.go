package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// expiry is when a finished Job's time to live is over: by the option for its
// outcome, else its spec, else the default of its options. ok is false if the Job has none, or
// keeps them to itself: options that cannot be read may say longer.
func expiry(job *batchv1.Job) (at time.Time, ok bool) {
	terminal := condition(job, finished(job))
	if terminal == nil || terminal.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	ttl, ok := ttlOf(job)
	return terminal.LastTransitionTime.Add(ttl), ok
}

func ttlOf(job *batchv1.Job) (time.Duration, bool) {
	policy, problems := wire.PolicySpec(job.Annotations)
	if len(problems) > 0 {
		return 0, false
	}
	options := policy.GetJob()
	if options == nil {
		options = &jobpolicyv1.JobOptions{}
	}
	ofOutcome := options.TtlSecondsAfterComplete
	if finished(job) == batchv1.JobFailed {
		ofOutcome = options.TtlSecondsAfterFailed
	}
	for _, seconds := range []*int32{ofOutcome, job.Spec.TTLSecondsAfterFinished, options.DefaultTtlSecondsAfterFinished} {
		if seconds != nil {
			return time.Duration(*seconds) * time.Second, true
		}
	}
	return 0, false
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
	at, ok := expiry(r.job)
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
	at, ok := expiry(r.job)
	most := settles
	if j.slowest < 0 {
		most += expiryLook
	}
	if over := j.now.Sub(latest(latest(at, j.calmSince), r.lastStimulus)); ok && over > most {
		j.breach("ttl", r.key, r.uid, "the Job is still there %s after its time to live was over", over)
	}
}

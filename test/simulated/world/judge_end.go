package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
)

// settles is the time after which a Job is at rest, once faults have ended: its status
// is right, its pods are released, and everything that it wants is done except what a
// retry delay holds back. It is twice the longest backoff after failed reconciles, plus
// slack for late views.
const settles = 2*time.Minute + defaultLag

// look compares the objects that should be at rest with what happened to them. It asks
// the server nothing: the stream of writes is complete.
func (j *judge) look(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	j.passTime()
	for _, uid := range sortedUIDs(j.jobs) {
		j.judgeEnd(j.jobs[uid])
	}
	for _, uid := range sortedUIDs(j.pods) {
		j.judgeLeftover(j.pods[uid])
	}
	j.judgeStrays()
	for _, uid := range sortedUIDs(j.crons) {
		j.judgeCronEnd(j.crons[uid])
	}
}

// settled reports whether the last event was long enough ago.
func (j *judge) settled(last time.Time) bool {
	return !j.calmSince.IsZero() && j.now.Sub(latest(last, j.calmSince)) > settles
}

// atWork reports whether an executor has just written something of the Job: a reconcile
// may be under way. A reconcile that never ends is found by its writes.
func (j *judge) atWork(r *jobRecord) bool { return !j.old(r.lastOurs) }

func (j *judge) judgeEnd(r *jobRecord) {
	j.judgeExpired(r)
	if r.gone || r.tampered || !j.managed(r.job) || !j.settled(latest(r.lastStimulus, j.leftAloneUntil(r))) || j.atWork(r) || j.namespaceGoes(r) {
		return
	}
	j.judgeBooks(r)
	j.judgePodCounts(r)
	switch {
	case finished(r.job) != "":
		j.judgeEndTold(r)
	case r.job.DeletionTimestamp != nil:
	case decided(r.job) != "":
		j.judgeStuck(r)
	default:
		j.judgeUndecided(r)
		j.judgeMissing(r)
		j.judgeStarts(r)
		j.judgeKept(r)
	}
}

// runsAgain reports whether a pod that has ended runs all the same, because its node was given up
// and is back. As long as it has the finalizer, it is counted only when it ends again.
func (p *podRecord) runsAgain() bool { return p.first != nil && p.active() && holds(p.pod) }

func (j *judge) namespaceGoes(r *jobRecord) bool {
	namespace := j.namespaces[r.key.Namespace]
	return namespace != nil && namespace.DeletionTimestamp != nil
}

// judgeBooks: each pod that ended is counted by how it ended, and released, and the
// counters are the sum. A completed index is not listed while the Job does not ask for it;
// a pod that the index accounted for stays accounted for.
func (j *judge) judgeBooks(r *jobRecord) {
	for _, p := range r.ends {
		if !r.accounts(p) && !p.accounted && p.excuse == "" && j.uncountable(r, p) == "" && !r.awaits(p) && (ledger.Ended(p.pod) || p.gone || j.mustBeOverdue(r, p)) {
			j.breach("status", r.key, r.uid, "pod %s ended (%s) and is not accounted for, and each pod that ended counts", p.key.Name, p.version().Status.Phase)
		}
	}
	n := 0
	for uid := range uncounted(&r.job.Status) {
		if p := j.pods[uid]; p == nil || !p.runsAgain() {
			n++
		}
	}
	if n > 0 {
		j.breach("status", r.key, r.uid, "%d pods are recorded and not counted at rest, and all are counted in the end", n)
	}
	var failed, succeeded int32
	for _, e := range r.entries {
		if e.as == asFailed {
			failed += e.counted
		} else {
			succeeded += e.counted
		}
	}
	s := &r.job.Status
	if s.Failed != failed {
		j.breach("status", r.key, r.uid, "status.failed is %d, and %d pods were counted as failed", s.Failed, failed)
	}
	if ledger.IsIndexed(r.job) {
		succeeded = int32(r.completed.Len())
		if spec := r.countedSpec(); valueOr(spec.Completions, 0) != valueOr(spec.Parallelism, 1) {
			return // A Job that was shrunk and changed again keeps its count.
		}
	}
	if s.Succeeded != succeeded {
		j.breach("status", r.key, r.uid, "status.succeeded is %d, and %d were counted as succeeded", s.Succeeded, succeeded)
	}
}

// countedSpec is the spec with which pods were last counted: that of a finished Job at its end.
func (r *jobRecord) countedSpec() *batchv1.JobSpec {
	if !r.finishedAt.IsZero() {
		for _, e := range r.earlier {
			if e.until.After(r.finishedAt) {
				return &e.job.Spec
			}
		}
	}
	return &r.job.Spec
}

// awaits reports whether a failed pod keeps its finalizer until its index has another
// pod. A pod that the status has recorded waits for nothing: it is released, and then counted.
func (r *jobRecord) awaits(p *podRecord) bool {
	return perIndex(r.job) && finished(r.job) == "" && r.lastFailure(podIndex(p.pod)) == p && uncounted(&r.job.Status)[p.uid] == ""
}

// judgePodCounts: active, ready and terminating are the numbers of such pods.
func (j *judge) judgePodCounts(r *jobRecord) {
	var active, ready, terminating int32
	for _, p := range r.live {
		switch {
		case !r.selects(p.pod):
			return // A Job that is being deleted does not release the pod.
		case p.active():
			active++
			if podReady(p.pod) {
				ready++
			}
		case p.terminating() && j.mustBeOverdue(r, p):
		case p.terminating() && j.mayBeOverdue(r, p):
			return // Some executor does not know yet.
		case p.terminating():
			terminating++
		}
	}
	s := &r.job.Status
	if s.Active != active || valueOr(s.Ready, 0) != ready || valueOr(s.Terminating, 0) != terminating {
		j.breach("status", r.key, r.uid, "the status says %d active, %d ready, %d terminating pods, and there are %d, %d and %d",
			s.Active, valueOr(s.Ready, 0), valueOr(s.Terminating, 0), active, ready, terminating)
	}
}

// judgeStuck: a Job with a verdict finishes when its pods are gone.
func (j *judge) judgeStuck(r *jobRecord) {
	for _, p := range r.live {
		if p.terminating() && !j.mustBeOverdue(r, p) || j.mayYetEnd(r, p) {
			return
		}
	}
	j.breach("liveness", r.key, r.uid, "the Job has had the condition %s for %s and is not finished, and nothing of it is left to wait for", decided(r.job), j.now.Sub(r.decidedAt))
}

// judgeUndecided: at rest, a Job that must end has a verdict.
func (j *judge) judgeUndecided(r *jobRecord) {
	if cause := j.undecided(r); cause != "" {
		j.breach("liveness", r.key, r.uid, "the Job goes on, and it should have ended: %s", cause)
	}
	if mayBeHeld(r.job) {
		return
	}
	if is := ledger.IsTrue(r.job, batchv1.JobSuspended); is != suspended(r.job) {
		j.breach("status", r.key, r.uid, "the condition Suspended is %t and spec.suspend is %t", is, suspended(r.job))
	}
	if !suspended(r.job) && r.job.Status.StartTime == nil {
		j.breach("status", r.key, r.uid, "the Job is not suspended and has no start time")
	}
}

// undecided says why the Job should have ended; empty if it should not.
func (j *judge) undecided(r *jobRecord) string {
	var active int
	for _, p := range r.live {
		if p.active() {
			active++
		}
	}
	succeeded, failures := r.succeeded(r.all()), r.failures(r.all(), r.fails)
	for _, p := range r.ends {
		unread := j.podjob && p.job != r && p.left.Sub(p.dueAt) <= j.lag
		if p.failed() && !unread && !p.flipped && p.excuse == "" && r.selects(p.pod) && policyAction(r.job, p.first) == batchv1.PodFailurePolicyActionFailJob {
			return sprint("pod %s failed in a way that fails the Job", p.key.Name)
		}
	}
	if at, ok := r.deadline(); ok && j.settled(at) {
		return sprint("its deadline passed at %s", at)
	}
	if at, ok := r.startDeadline(); ok && j.settled(at) && j.neverStarted(r) {
		return sprint("its deadline to start passed at %s, and no pod has run", at)
	}
	switch limit := int64(valueOr(r.job.Spec.BackoffLimit, 6)); {
	case failures > limit:
		return sprint("%d pods failed of %d that may", failures, limit)
	case r.restarting() >= max(limit, 1):
		return sprint("the containers of running pods restarted %d times of %d that they may", r.restarting(), limit)
	case tooManyMissing(r.job, r.failed) == "":
		return sprint("%d indexes failed, and that is more than may", r.failed.Len())
	case perIndex(r.job) && failedIndexesMissing(r.job) == "":
		return "all indexes are done, and some failed"
	case r.job.Spec.SuccessPolicy != nil && successPolicyMissing(r, r.job) == "":
		return "its success policy is met"
	case active == 0 && r.job.Spec.Completions != nil && succeeded >= int64(*r.job.Spec.Completions):
		return sprint("%d of %d succeeded", succeeded, *r.job.Spec.Completions)
	case active == 0 && r.job.Spec.Completions == nil && succeeded > 0:
		return "a pod of the work queue succeeded, and none is left"
	}
	return ""
}

// judgeMissing: at rest, as many pods run as the Job wants, except those that a retry
// delay, a quota, ending pods or options that cannot be read hold back.
func (j *judge) judgeMissing(r *jobRecord) {
	var active, terminating int64
	for _, p := range r.live {
		switch {
		case p.active():
			active++
		case p.terminating() && !j.mustBeOverdue(r, p):
			terminating++
		}
	}
	seen := r.all()
	if j.podjob {
		seen.letGo = func(p *podRecord) bool { return p.excuse != "" || p.job != r }
	}
	wanted := j.wanted(r, r.succeeded(seen))
	needed := wanted // A pod of an index that is done may run on, as with the built-in controller.
	if ledger.IsIndexed(r.job) {
		completions := valueOr(r.job.Spec.Completions, 0)
		needed = min(wanted, int64(completions)-r.completed.Union(r.failed).Below(completions).Len())
	}
	needed -= j.delayedIndexes(r) // No other index gets the place of one that waits.
	switch {
	case suspended(r.job) && active > 0:
		j.breach("liveness", r.key, r.uid, "the Job is suspended, and %d pods run", active)
	case active > wanted && (r.job.Spec.Completions != nil || wanted > 0):
		j.breach("liveness", r.key, r.uid, "%d pods run, and the Job wants %d", active, wanted)
	case active+terminating >= needed || j.delayed(r) || j.outOfQuota(r) || mayBeHeld(r.job):
	default:
		j.breach("liveness", r.key, r.uid, "%d pods run, the Job wants %d, and nothing holds the others back", active, needed)
	}
}

// delayed reports whether a retry delay holds all pods back, or did until lately. With limits per
// index, it does so if the failed pods do not fit into the executor's list: they hide the others.
func (j *judge) delayed(r *jobRecord) bool {
	if !perIndex(r.job) {
		return !j.settled(j.heldUntil(r))
	}
	return j.fewRows && j.delayedIndexes(r) > 0
}

// delayedIndexes is how many indexes with limits of their own wait for the end of a retry delay,
// or did until lately.
func (j *judge) delayedIndexes(r *jobRecord) int64 {
	held := map[int32]bool{}
	for _, p := range r.ends {
		ix := podIndex(p.pod)
		if last := r.lastFailure(ix); !perIndex(r.job) || !holds(p.pod) || (last != nil && last != p) {
			continue
		}
		if !j.settled(p.finished.Add(j.mostDelay(r, int(failuresBefore(p))+1))) {
			held[ix] = true
		}
	}
	return int64(len(held))
}

// outOfQuota reports whether a quota of the namespace leaves no room for a pod.
func (j *judge) outOfQuota(r *jobRecord) bool {
	for _, quota := range j.quotas {
		if quota.Namespace != r.key.Namespace {
			continue
		}
		for _, name := range []corev1.ResourceName{corev1.ResourcePods, "count/pods"} {
			if most, ok := quota.Spec.Hard[name]; ok && j.podsIn(r.key.Namespace) >= most.Value() {
				return true
			}
		}
	}
	return false
}

func (j *judge) podsIn(namespace string) (n int64) {
	for _, p := range j.pods {
		if !p.gone && p.key.Namespace == namespace && !ledger.Ended(p.pod) {
			n++
		}
	}
	return n
}

// judgeLeftover: at rest, no pod keeps the tracking finalizer without a reason.
func (j *judge) judgeLeftover(p *podRecord) {
	if p.gone || !holds(p.pod) || p.claimedBy == "" {
		return
	}
	r := p.job
	switch {
	case r == nil:
		if !j.selected(p.pod) && j.settled(latest(p.claimedAt, p.endedAt)) && j.replacesBuiltin() {
			j.breach("orphans", p.key, p.uid, "the pod holds the tracking finalizer, and no Job controls or selects it")
		}
		return
	case !j.managed(r.job):
		if !r.gone || !j.replacesBuiltin() {
			return
		}
	}
	last := latest(latest(latest(r.lastStimulus, r.goneAt), latest(r.finishedAt, p.endedAt)), j.leftAloneUntil(r))
	if !j.settled(last) || r.tampered || j.atWork(r) || j.namespaceGoes(r) {
		return
	}
	switch {
	case r.gone && !j.replacesBuiltin() && len(j.writers) > 1:
		// An executor that did not know the Job leaves its pods to the built-in
		// controller.
	case r.gone:
		j.breach("orphans", p.key, p.uid, "the pod holds the tracking finalizer, and its Job %s is gone", r.key.Name)
	case finished(r.job) != "":
		j.breach("status", p.key, p.uid, "the pod holds the tracking finalizer, and its Job %s is finished", r.key.Name)
	case r.job.DeletionTimestamp != nil:
		j.breach("status", p.key, p.uid, "the pod holds the tracking finalizer, and its Job %s is being deleted", r.key.Name)
	case ledger.Ended(p.pod) && !r.awaits(p):
		j.breach("status", p.key, p.uid, "the pod has ended and holds the tracking finalizer at rest, and Job %s has no reason to keep it", r.key.Name)
	}
}

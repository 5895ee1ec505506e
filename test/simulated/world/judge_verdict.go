package world

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeJobWrite checks an executor's write of a Job.
func (j *judge) judgeJobWrite(w apiserver.Write, r *jobRecord, next *batchv1.Job, problems []ledger.Problem) {
	if w.Verb == "delete" || w.Verb == "deletecollection" {
		j.judgeJobDeletion(w, r)
		return
	}
	if !j.managed(r.job) {
		j.breach("I9", r.key, r.uid, "%s wrote a Job that somebody else manages, and must leave it alone", w.By)
		return
	}
	j.judgeStandDown(w, r)
	if next == nil || w.Subresource != "status" {
		return
	}
	j.judgeAnswer(w, r)
	switch {
	case decided(next) == decided(r.job) && w.Time.Before(r.guardedUntil):
	case decided(next) != decided(r.job) || finished(next) != "":
		j.judgeLate(w, r, prompt, "announced an end")
	default:
		j.judgeLate(w, r, j.allowance(), "wrote a status")
	}
	if !r.finishedAt.IsZero() {
		j.breach("I4", r.key, r.uid, "%s wrote the status of a Job that is %s, and that is the last word", w.By, finished(r.job))
		return
	}
	j.judgeFirstStatus(w, r, next)
	j.judgeLastValid(w, r, next)
	j.judgeLedger(w, r, next, problems)
	j.judgeVerdicts(w, r, next)
	if !j.terse {
		j.judgeWords(w, r, next)
		j.judgeTimes(w, r, next)
	}
	if decided(next) == "" {
		j.judgeRestarts(w, r)
	}
}

// judgeRestarts: a Job fails when the containers of its running pods have restarted as
// often as its backoff limit allows. The check at the end is too late for this: by then the
// pods may have succeeded.
func (j *judge) judgeRestarts(w apiserver.Write, r *jobRecord) {
	if j.lately(r, suspended) || r.job.DeletionTimestamp != nil || j.namespaceGoes(r) {
		return
	}
	var known, limit int64
	for _, p := range r.live {
		if p.active() && p.pod.Status.Phase != corev1.PodUnknown && j.shownOf(r, p, w.By) && j.old(p.restartedAt) {
			known += restarts(p.pod)
		}
	}
	for _, job := range j.recent(r) {
		limit = max(limit, int64(valueOr(job.Spec.BackoffLimit, 6)), 1)
	}
	if r.job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && known >= limit {
		j.breach("verdict", r.key, r.uid, "%s wrote a status that lets the Job go on, although the containers of running pods have restarted %d times of %d that they may", w.By, known, limit)
	}
}

// judgeVerdicts checks that each new verdict has a cause.
func (j *judge) judgeVerdicts(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if ledger.IsTrue(next, kind) && !ledger.IsTrue(r.job, kind) {
			j.judgeCause(w, r, next, condition(next, kind))
		}
	}
	j.judgeClassified(w, r, next)
}

// shown reports whether an executor must know of a pod: it gave the pod to the Job
// itself, or every view includes that.
func (j *judge) shown(p *podRecord, by string) bool {
	return j.told(mark{p.claimedBy, p.claimedAt}, by)
}

// shownOf reports whether an executor must know that the Job has the pod: its selector
// matches, and did not begin to match again a moment ago.
func (j *judge) shownOf(r *jobRecord, p *podRecord, by string) bool {
	return j.shown(p, by) && r.selects(p.pod) && j.old(p.strayAt)
}

// judgeCause checks that a new verdict has a cause.
func (j *judge) judgeCause(w apiserver.Write, r *jobRecord, next *batchv1.Job, c *batchv1.JobCondition) {
	var missing string
	succeeds := c.Type == batchv1.JobSuccessCriteriaMet
	switch {
	case !succeeds:
		missing = j.failureMissing(w, r, next, c.Reason)
	case c.Reason == batchv1.JobReasonCompletionsReached:
		missing = j.completionsMissing(w, r, next)
	case c.Reason == batchv1.JobReasonSuccessPolicy:
		missing = successPolicyMissing(r, next)
	default:
		missing = noRule
	}
	if missing != "" {
		j.breach("verdict", r.key, r.uid, "%s declared %s (%s), and %s", w.By, c.Type, c.Reason, missing)
	}
	if succeeds {
		j.judgeOverlooked(w, r, next)
	}
}

// judgeOverlooked: a writer that saw the successes behind a declared success has also
// seen the failures before them, and those that every view shows by now. Failures go
// before successes. A watch shows ends in order; a new list shows pods in the order of
// their names, and the executor may decide in the midst of it.
func (j *judge) judgeOverlooked(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	seen := r.successesSeen(next)
	var failures int64
	for _, p := range r.ends {
		inOrder := p.dueOrder <= seen && p.dueAt.After(j.writer(w.By).listed)
		known := inOrder || (j.mustKnowEnd(r, p, w.By) && !j.lost(r, p, w.By))
		if !known || !p.failed() || j.leavesWithJob(r, p) || p.flipped || p.excuse != "" || !r.selects(p.pod) || !p.strayAt.IsZero() {
			continue
		}
		if policyAction(r.job, p.first) == batchv1.PodFailurePolicyActionFailJob {
			j.breach("verdict", r.key, r.uid, "%s declared success after pod %s had failed in a way that fails the Job (FailJob), and failure goes first", w.By, p.key.Name)
		}
		if r.fails(p) && j.always(r, func(job *batchv1.Job) bool { return inRange(job, p.pod) }) {
			failures++
		}
	}
	if limit := int64(valueOr(r.job.Spec.BackoffLimit, 6)); failures > limit {
		j.breach("verdict", r.key, r.uid, "%s declared success after %d pods had failed, and failure goes first: backoffLimit is %d", w.By, failures, limit)
	}
}

// successesSeen is the version up to which the writer of a success has at least seen
// pods end, because views show ends in order. 0: unknown.
func (r *jobRecord) successesSeen(next *batchv1.Job) (seen uint64) {
	if !ledger.IsIndexed(next) {
		wanted := int(valueOr(next.Spec.Completions, 1))
		for _, p := range r.ends {
			if p.succeeded() {
				wanted--
			}
			if wanted == 0 {
				return p.dueOrder
			}
		}
		return 0
	}
	left := completedIndexes(&next.Status)
	first := map[int32]uint64{}
	for _, p := range r.ends {
		ix := podIndex(p.pod)
		if _, known := first[ix]; !known && p.succeeded() && left.Has(ix) {
			first[ix] = p.dueOrder
		}
	}
	for _, at := range first {
		seen = max(seen, at)
	}
	return seen
}

func (j *judge) completionsMissing(w apiserver.Write, r *jobRecord, next *batchv1.Job) string {
	least := int64(1)
	for i, job := range j.recent(r) {
		if n := int64(valueOr(job.Spec.Completions, 1)); i == 0 || n < least {
			least = n
		}
	}
	if n := max(r.succeeded(j.most(r, w.By, next)), provenIndexes(next)); n < least {
		return sprint("%d of %d pods have succeeded", n, least)
	}
	if next.Spec.Completions == nil && r.job.DeletionTimestamp != nil {
		return "a work queue that is being deleted is not complete because its pods are gone"
	}
	for _, uid := range sortedUIDs(r.live) {
		if p := r.live[uid]; p.active() && j.shownOf(r, p, w.By) {
			return sprint("pod %s still runs", p.key.Name)
		}
	}
	return ""
}

func successPolicyMissing(r *jobRecord, next *batchv1.Job) string {
	if next.Spec.SuccessPolicy == nil {
		return "the Job has no success policy"
	}
	if !slices.ContainsFunc(next.Spec.SuccessPolicy.Rules, func(rule batchv1.SuccessPolicyRule) bool { return ruleMet(next, rule) }) {
		return sprint("no rule of the success policy is met by the completed indexes %q", next.Status.CompletedIndexes)
	}
	return ""
}

// ruleMet reports whether the completed indexes meet a rule of the success policy.
func ruleMet(job *batchv1.Job, rule batchv1.SuccessPolicyRule) bool {
	completed := completedIndexes(&job.Status)
	if rule.SucceededIndexes == nil {
		return completed.Len() >= int64(valueOr(rule.SucceededCount, 0))
	}
	wanted := ledger.Indexes(*rule.SucceededIndexes).Below(valueOr(job.Spec.Completions, 0))
	have := wanted.Intersect(completed).Len()
	return have > 0 && (have == wanted.Len() || (rule.SucceededCount != nil && have >= int64(*rule.SucceededCount)))
}

package engine_test

import (
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The checks of the model know the true state of the cluster, and check how a
// decision would change it.

func (c *cluster) checkDecision(req *jobpolicyv1.DecideJobRequest, resp *jobpolicyv1.DecideJobResponse) {
	if resp.GetCreate() != nil {
		c.checkCreate(resp.GetCreate())
	}
	for _, d := range resp.GetDelete() {
		c.checkDelete(d)
	}
	c.checkDeleteFinished(resp.GetDeleteFinished())
	if resp.GetVerdict().GetRule() == jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED {
		c.checkStartDeadline()
	}
	if create := resp.GetCreate(); create != nil && create.GetActiveDeadlineSeconds() != c.spec.GetOptions().GetTryDeadlineSeconds() {
		c.t.Fatalf("each pod may be active for %ds, want %ds", create.GetActiveDeadlineSeconds(), c.spec.GetOptions().GetTryDeadlineSeconds())
	}
	if n := len(resp.GetDelete()); n > 0 && resp.GetDelete()[n-1].GetReason() == jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY {
		if left := int(req.GetPods().GetActive()) - n; left < int(resp.GetExplanation().GetFacts().GetWantedActive()) {
			c.t.Fatalf("%d pods are left of %d wanted", left, resp.GetExplanation().GetFacts().GetWantedActive())
		}
	}
}

// checkStartDeadline checks against the true state that no pod which the executor knows has
// run since the Job started, also of those that are gone, and that the deadline is over.
func (c *cluster) checkStartDeadline() {
	start := c.status.GetStartTime().AsTime()
	if due := start.Add(time.Duration(c.spec.GetOptions().GetStartDeadlineSeconds()) * time.Second); c.now.Before(due) {
		c.t.Fatalf("fails %s before the deadline to start", due.Sub(c.now))
	}
	for _, p := range c.pods {
		if p.seen && !p.ran.IsZero() && !p.ran.Before(c.began) && !p.releasedFirst {
			c.t.Fatalf("fails because no pod has run, but pod %s has", uidName(p.uid))
		}
	}
}

// checkUnlisted compares with the decision on all rows: a Job that fails there
// does not succeed because rows were left out.
func (c *cluster) checkUnlisted(whole, req *jobpolicyv1.DecideJobRequest, resp *jobpolicyv1.DecideJobResponse) {
	if req.GetUnlistedPods() == nil || !is(resp.GetStatus(), criteriaMet) || is(c.status, criteriaMet) {
		return
	}
	whole.ActivePods = req.GetActivePods()
	if full := c.ask(whole); is(full.GetStatus(), failureTarget) {
		c.t.Fatalf("succeeds without having seen all:\n%s\nbut with all rows:\n%s", render(resp), render(full))
	}
}

// checkCreate checks I6 against the true state: no more pods run than allowed, and no
// work is done twice.
func (c *cluster) checkCreate(create *jobpolicyv1.CreatePods) {
	for _, t := range []string{criteriaMet, failureTarget, complete, failed} {
		if is(c.status, t) {
			c.t.Fatalf("creates pods for a Job that is %s", t)
		}
	}
	if c.now.Before(c.createAfter) {
		c.t.Fatalf("creates pods before the executor wants to try again")
	}
	busy := len(c.podsThat((*modelPod).active)) + len(c.ghosts)
	if c.replaceFailedOnly() {
		busy += len(c.podsThat(func(p *modelPod) bool { return p.terminating() && !c.overdue(p) }))
	}
	room := int(c.spec.GetParallelism()) - busy
	done := len(c.podsThat(c.succeeded))
	if !c.indexed() && c.spec.Completions != nil {
		room = min(room, int(c.spec.GetCompletions())-done-busy)
	}
	known := c.podsThat(func(p *modelPod) bool { return p.seen && c.succeeded(p) })
	if c.spec.Completions == nil && len(known) > 0 {
		room = 0
	}
	if int(create.GetCount()) > room {
		c.t.Fatalf("I6: creates %d pods with room for %d", create.GetCount(), room)
	}
	for _, ix := range createdIndexes(create) {
		if ix != nil {
			c.checkIndexFree(*ix)
		}
	}
	c.checkRetryDelays(create)
}

func (c *cluster) checkIndexFree(ix int32) {
	for _, p := range c.pods {
		if p.index != nil && *p.index == ix && (p.active() || c.succeeded(p)) {
			c.t.Fatalf("I6: creates index %d, which is running or done", ix)
		}
	}
	for _, ghost := range c.ghosts {
		if *ghost == ix {
			c.t.Fatalf("I6: creates index %d, which may have been created", ix)
		}
	}
}

// succeeded reports whether the pod did work that counts. The work of a pod
// that was given up before it ended does not.
func (c *cluster) succeeded(p *modelPod) bool {
	givenUp := p.releasedFirst || p.lateEnd || p.forgotten || c.counted[string(p.uid)] == "failed" ||
		contains(c.status.GetUncounted().GetFailed(), p.uid)
	return p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && !givenUp && c.inRange(p)
}

func (c *cluster) checkDelete(d *jobpolicyv1.DeletePod) {
	p := c.pod(d.GetUid())
	if p == nil || !p.active() {
		c.t.Fatalf("deletes a pod that is not active")
	}
	ok := false
	switch d.GetReason() {
	case jobpolicyv1.DeleteReason_DELETE_REASON_SUSPENDED:
		ok = c.spec.GetSuspend()
	case jobpolicyv1.DeleteReason_DELETE_REASON_JOB_FINISHED:
		ok = is(c.status, criteriaMet) || is(c.status, failureTarget)
	case jobpolicyv1.DeleteReason_DELETE_REASON_TOO_MANY:
		ok = !is(c.status, criteriaMet) && !is(c.status, failureTarget)
	case jobpolicyv1.DeleteReason_DELETE_REASON_BAD_INDEX:
		twins := c.podsThat(func(q *modelPod) bool {
			return q.active() && q.index != nil && p.index != nil && *q.index == *p.index
		})
		ok = c.indexed() && (!c.inRange(p) || len(twins) > 1)
	}
	if !ok {
		c.t.Fatalf("deletes a pod for %s", d.GetReason())
	}
}

// checkLedger follows each UID through the ledger: recorded once, with one
// verdict, counted once (I2, I3).
func (c *cluster) checkLedger(next *jobpolicyv1.JobStatus) {
	before := c.status.GetUncounted()
	c.countLeavers("succeeded", before.GetSucceeded(), next.GetUncounted().GetSucceeded())
	c.countLeavers("failed", before.GetFailed(), next.GetUncounted().GetFailed())
	c.checkNewEntries("succeeded", before.GetSucceeded(), next.GetUncounted().GetSucceeded())
	c.checkNewEntries("failed", before.GetFailed(), next.GetUncounted().GetFailed())
	tally := map[string]int32{}
	for _, verdict := range c.counted {
		tally[verdict]++
	}
	if next.GetFailed() != tally["failed"] {
		c.t.Fatalf("I2: failed is %d, counted were %d pods", next.GetFailed(), tally["failed"])
	}
	if !c.indexed() && next.GetSucceeded() != tally["succeeded"] {
		c.t.Fatalf("I2: succeeded is %d, counted were %d pods", next.GetSucceeded(), tally["succeeded"])
	}
	for ix := range indexes(next.GetCompletedIndexes()).Minus(indexes(c.status.GetCompletedIndexes())).All {
		done := c.podsThat(func(p *modelPod) bool {
			return p.index != nil && *p.index == ix && p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		})
		if len(done) == 0 {
			c.t.Fatalf("index %d is completed without a pod that succeeded", ix)
		}
	}
}

func (c *cluster) countLeavers(verdict string, before, after [][]byte) {
	for _, uid := range before {
		if contains(after, uid) {
			continue
		}
		if c.counted[string(uid)] != "" {
			c.t.Fatalf("I2: a pod is counted twice")
		}
		if p := c.pod(uid); p.tracked && !p.gone {
			c.t.Fatalf("I2: a pod is counted while it holds the finalizer")
		}
		c.counted[string(uid)] = verdict
	}
}

func (c *cluster) checkNewEntries(verdict string, before, after [][]byte) {
	for _, uid := range after {
		if contains(before, uid) {
			continue
		}
		if c.counted[string(uid)] != "" {
			c.t.Fatalf("I2: a pod is recorded again after it was counted")
		}
		p := c.pod(uid)
		switch {
		case !c.inRange(p):
			c.t.Fatalf("a pod without an index in range is recorded")
		case verdict == "succeeded" && p.phase != jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED:
			c.t.Fatalf("a pod in phase %s is recorded as succeeded", p.phase)
		case verdict == "failed" && p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED:
			c.t.Fatalf("a succeeded pod is recorded as failed")
		}
	}
}

func contains(list [][]byte, uid []byte) bool {
	return slices.ContainsFunc(list, func(other []byte) bool { return string(other) == string(uid) })
}

// checkRelease checks I1: the written status accounts for the pod.
func (c *cluster) checkRelease(p *modelPod) {
	uncounted := c.status.GetUncounted()
	recorded := contains(uncounted.GetSucceeded(), p.uid) || contains(uncounted.GetFailed(), p.uid)
	uncountable := !p.terminal() && (is(c.status, criteriaMet) || c.spec.GetDeleting())
	switch {
	case recorded, isFinished(c.status), !c.inRange(p), uncountable, c.counted[string(p.uid)] != "":
		return
	case c.spec.GetDeleting() && p.deleting:
		p.lateEnd = true
		return
	case p.phase != jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && c.ignored(p):
		return
	case c.indexed() && p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED &&
		(indexes(c.status.GetCompletedIndexes()).Has(*p.index) || indexes(c.status.GetFailedIndexes()).Has(*p.index)):
		return
	}
	c.t.Fatalf("I1: releases pod %+v, which no status accounts for:\n%s", *p, render(c.status))
}

// checkEnd checks a Job after the last decision.
func (c *cluster) checkEnd() {
	c.checkRetriesPerIndex()
	if held := c.podsThat(func(p *modelPod) bool { return !p.gone && p.tracked && (p.terminal() || isFinished(c.status)) }); len(held) > 0 && c.ended() {
		c.t.Fatalf("%d pods are left with the finalizer; status:\n%s", len(held), render(c.status))
	}
	if !isFinished(c.status) {
		return
	}
	for _, p := range c.pods {
		verdict := c.counted[string(p.uid)]
		if c.indexed() && p.phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
			if verdict == "succeeded" {
				c.t.Fatalf("a succeeded pod of an Indexed Job is counted by UID")
			}
			continue
		}
		// A pod that ended while the Job had its finalizer on it is counted,
		// unless there is a reason not to.
		if p.terminal() && verdict == "" && !p.releasedFirst && c.inRange(p) && !c.ignored(p) && !p.lateEnd && !p.forgotten {
			c.t.Fatalf("pod %+v ended and was never counted; status:\n%s", *p, render(c.status))
		}
	}
	if c.indexed() || c.spec.Completions == nil || !is(c.status, complete) {
		return
	}
	if c.status.GetSucceeded() < c.spec.GetCompletions() {
		c.t.Fatalf("Complete with %d of %d", c.status.GetSucceeded(), c.spec.GetCompletions())
	}
}

// checkRetriesPerIndex compares the limit per index with the pods that existed.
func (c *cluster) checkRetriesPerIndex() {
	if c.spec.BackoffLimitPerIndex == nil || !c.intact {
		return
	}
	failures := map[int32]int32{}
	for _, p := range c.pods {
		if p.phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED && !c.ignored(p) {
			failures[*p.index]++
		}
	}
	for ix, n := range failures {
		if n > c.spec.GetBackoffLimitPerIndex()+1 {
			c.t.Fatalf("index %d failed %d times, retries allowed: %d", ix, n, c.spec.GetBackoffLimitPerIndex())
		}
	}
}

// ended reports whether the Job is finished or deleted. Then no pod may have the finalizer.
// Before, failed pods may keep it until they are replaced.
func (c *cluster) ended() bool {
	return isFinished(c.status) || c.spec.GetDeleting() || c.spec.BackoffLimitPerIndex == nil
}

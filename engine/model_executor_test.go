package engine_test

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// reconcile is one reconcile of the executor: observe, decide, carry out. It returns the
// decision that it tried to carry out; nil if its view is stale.
func (c *cluster) reconcile() *jobpolicyv1.DecideJobResponse {
	if c.stale {
		return nil
	}
	req := c.observe()
	whole := proto.CloneOf(req)
	c.cut(req)
	resp := c.ask(req)
	if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		req = c.withRows(req)
		resp = c.ask(req)
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
			c.t.Fatalf("asked for the same rows twice:\n%s", render(resp))
		}
	}
	c.logf("%s %s", resp.GetDisposition(), resp.GetExplanation().GetSummary())
	c.checkDecision(req, resp)
	c.checkUnlisted(whole, req, resp)
	c.carryOut(resp)
	return resp
}

// ask decides, and checks what must hold of any answer.
func (c *cluster) ask(req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobResponse {
	before := proto.CloneOf(req)
	resp, err := engine.DecideJob(req)
	if err != nil {
		c.t.Fatalf("%v\nrequest: %s", err, render(req))
	}
	if !proto.Equal(before, req) {
		c.t.Fatalf("the request was changed:\n%s", render(req))
	}
	again, err := engine.DecideJob(shuffled(c.t, req))
	if err != nil {
		c.t.Fatal(err)
	}
	if got, want := wireBytes(c.t, again), wireBytes(c.t, resp); string(got) != string(want) {
		c.t.Fatalf("I7: other order of rows, other answer:\n%s\n%s", render(resp), render(again))
	}
	if broken := brokenPromises(req, resp); len(broken) > 0 {
		c.t.Fatalf("%v\nrequest:\n%s\nresponse:\n%s", broken, render(req), render(resp))
	}
	return resp
}

// cutRows leaves rows out of the request, as an executor with too many rows may. It
// keeps the rows of pods that the status lists.
func (c *cluster) cutRows(req *jobpolicyv1.DecideJobRequest, keep func(*jobpolicyv1.UnaccountedPod) bool) {
	recorded := map[string]bool{}
	for _, uid := range slices.Concat(req.GetStatus().GetUncounted().GetSucceeded(), req.GetStatus().GetUncounted().GetFailed()) {
		recorded[string(uid)] = true
	}
	var kept, left []*jobpolicyv1.UnaccountedPod
	for _, row := range req.GetUnaccountedPods() {
		if recorded[string(row.GetUid())] || keep(row) {
			kept = append(kept, row)
			continue
		}
		left = append(left, row)
	}
	req.UnaccountedPods, req.UnlistedPods = kept, unlisted(left)
	if c.replaceFailedOnly() {
		req.UnlistedPods.Terminating = terminating(left)
	}
	if !c.indexed() {
		req.UnlistedPods.SucceededIndexes, req.UnlistedPods.FailedIndexes = nil, nil
	}
}

func terminating(rows []*jobpolicyv1.UnaccountedPod) (n int32) {
	for _, row := range rows {
		n += count(row.GetPhase() != jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED && row.GetPhase() != jobpolicyv1.PodPhase_POD_PHASE_FAILED)
	}
	return n
}

// cut draws how many rows the request holds.
func (c *cluster) cut(req *jobpolicyv1.DecideJobRequest) {
	if c.faulty && rapid.IntRange(0, 9).Draw(c.t, "cut") == 0 {
		c.cutRows(req, func(*jobpolicyv1.UnaccountedPod) bool { return rapid.Bool().Draw(c.t, "keep") })
		if rapid.IntRange(0, 3).Draw(c.t, "indexes not known") == 0 {
			req.UnlistedPods.FailedIndexes = nil
		}
		return
	}
	if c.rowLimit == 0 || len(req.GetUnaccountedPods()) <= c.rowLimit {
		return
	}
	// As the executor does it: what can be recorded goes first.
	slices.SortStableFunc(req.UnaccountedPods, func(a, b *jobpolicyv1.UnaccountedPod) int {
		return int(terminating([]*jobpolicyv1.UnaccountedPod{a}) - terminating([]*jobpolicyv1.UnaccountedPod{b}))
	})
	// Of the pods of an index, it keeps all or none.
	listed, hasIndex := 0, map[int32]bool{}
	for _, row := range req.GetUnaccountedPods()[:c.rowLimit] {
		if row.Index != nil {
			hasIndex[row.GetIndex()] = true
		}
	}
	c.cutRows(req, func(row *jobpolicyv1.UnaccountedPod) bool {
		listed++
		return listed <= c.rowLimit || (row.Index != nil && hasIndex[row.GetIndex()])
	})
}

// carryOut follows the order of the contract and stops where something fails.
func (c *cluster) carryOut(resp *jobpolicyv1.DecideJobResponse) {
	if resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		return
	}
	if !c.create(resp.GetCreate()) || !c.delete(resp.GetDelete()) || !c.end(resp.GetEnd()) {
		return
	}
	if resp.GetStatus() != nil && !c.write(resp.GetStatus()) {
		return
	}
	c.release(resp)
	c.deleteFinished(resp.GetDeleteFinished())
}

// goesWrong draws whether the next call fails.
func (c *cluster) goesWrong(what string) bool {
	wrong := c.faulty && rapid.IntRange(0, 5).Draw(c.t, what) == 0
	if wrong {
		c.logf("fault: %s", what)
	}
	return wrong
}

func (c *cluster) create(create *jobpolicyv1.CreatePods) bool {
	inherited := map[int32]*jobpolicyv1.IndexFailureCount{}
	for _, counts := range create.GetFailureCounts() {
		inherited[counts.GetIndex()] = counts
	}
	ok := true
	for _, ix := range createdIndexes(create) {
		if c.goesWrong("creation refused") {
			c.createAfter = c.now.Add(5 * time.Second)
			ok = false
			break
		}
		if c.goesWrong("creation lost") {
			c.ghosts = append(c.ghosts, ix)
			ok = false
			continue
		}
		p := c.addPod(ix)
		if ix != nil {
			p.failures, p.ignored = inherited[*ix].GetFailures(), inherited[*ix].GetIgnoredFailures()
		}
		if c.goesWrong("creation not seen") {
			p.seen = false
		}
	}
	return ok
}

func createdIndexes(create *jobpolicyv1.CreatePods) []*int32 {
	if create.GetIndexes() == nil {
		return make([]*int32, create.GetCount())
	}
	var list []*int32
	for ix := range indexes(create.GetIndexes()).All {
		list = append(list, proto.Int32(ix))
	}
	return list
}

func (c *cluster) delete(deletes []*jobpolicyv1.DeletePod) bool {
	ok := true
	for _, d := range deletes {
		p := c.pod(d.GetUid())
		if d.GetReleaseFirst() {
			p.tracked, p.releasedFirst = false, true
			p.releaseSeen = !c.goesWrong("release not seen")
			c.intact = false
		}
		if c.goesWrong("deletion refused") {
			ok = false
			continue
		}
		c.beginDeletion(p)
	}
	return ok
}

// write does what the API server does with a status update.
func (c *cluster) write(next *jobpolicyv1.JobStatus) bool {
	if c.goesWrong("status write refused") {
		return false
	}
	if broken := (statusChange{c.spec, c.status, next}).violations(); len(broken) > 0 {
		c.t.Fatalf("I5: the API server would refuse the status: %v\nbefore:\n%s\nafter:\n%s", broken, render(c.status), render(next))
	}
	if err := conditionsRemoved(c.status, next); err != nil {
		c.t.Fatalf("I4: %v", err)
	}
	c.checkLedger(next)
	if !proto.Equal(c.status.GetStartTime(), next.GetStartTime()) {
		c.began = c.now
	}
	c.status = proto.CloneOf(next)
	if rapid.Bool().Draw(c.t, "pause") {
		c.recordsUntil, c.quietUntil = c.now.Add(time.Second), c.now.Add(1500*time.Millisecond)
	}
	if c.goesWrong("answer to status write lost") {
		return false // Not knowing, the executor reads the Job anew.
	}
	c.stale = c.goesWrong("status not seen")
	return true
}

func (c *cluster) release(resp *jobpolicyv1.DecideJobResponse) {
	for _, uid := range resp.GetRelease() {
		p := c.pod(uid)
		c.checkRelease(p)
		p.lateEnd = p.lateEnd || c.overdue(p) || p.terminating() && contains(c.status.GetUncounted().GetFailed(), p.uid)
		if c.goesWrong("release refused") {
			continue
		}
		p.tracked = false
		if !c.goesWrong("release not seen") {
			p.releaseSeen = true
		}
		p.leaveIfDone()
	}
}

// catchUp makes the executor's view current, as a restart does: it lists
// everything anew, and remembers nothing.
func (c *cluster) catchUp() {
	c.ghosts, c.createAfter = nil, time.Time{}
	c.stale = false
	for _, p := range c.pods {
		p.seen = true
		p.releaseSeen = !p.tracked
	}
}

func (c *cluster) advance(d time.Duration) { c.now = c.now.Add(d) }

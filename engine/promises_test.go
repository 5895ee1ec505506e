package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/answer"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// promises collects the rules of the contract that a decision breaks. These rules
// apply to every decision, whatever the request.
type promises struct {
	req    *jobpolicyv1.DecideJobRequest
	resp   *jobpolicyv1.DecideJobResponse
	broken []string
}

// brokenPromises lists the promises of the contract that a decision breaks.
func brokenPromises(req *jobpolicyv1.DecideJobRequest, resp *jobpolicyv1.DecideJobResponse) []string {
	p := &promises{req: req, resp: resp}
	p.times()
	p.disposition()
	p.gang()
	p.policy()
	p.creation()
	p.raises()
	p.deletion()
	p.finishedPods()
	p.ends()
	p.changeLimit()
	p.nextCreation()
	p.nextStep()
	p.releases()
	p.recordedArePassedOn()
	p.statusCounts()
	p.ledger()
	p.explanation()
	p.end()
	return p.broken
}

func (p *promises) expect(ok bool, format string, args ...any) {
	if !ok {
		p.broken = append(p.broken, fmt.Sprintf(format, args...))
	}
}

func (p *promises) disposition() {
	r := p.resp
	acts := (r.GetGang() != nil && p.fresh()) || r.GetCreate() != nil || len(r.GetDelete())+len(r.GetEnd()) > 0 || r.GetStatus() != nil || len(r.GetRelease()) > 0 || len(r.GetDeleteFinished()) > 0
	p.expect(acts == (r.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY), "disposition %s, acts: %t", r.GetDisposition(), acts)
	incomplete := r.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
	p.expect(incomplete == (len(r.GetRequirements()) > 0), "disposition %s with requirements %v", r.GetDisposition(), r.GetRequirements())
	p.expect(!incomplete || p.req.GetActivePods() == nil, "asks again for the rows it was given")
	p.expect(acts == (r.GetFollowUp() != 0), "disposition %s with follow up %s", r.GetDisposition(), r.GetFollowUp())
	rule := p.resp.GetExplanation().GetDecidingRule()
	p.expect(incomplete || r.GetVerdict().GetRule() == rule, "the verdict of rule %q, explained by %q", r.GetVerdict().GetRule(), rule)
	p.expect(r.GetRequestId() == p.req.GetRequestId(), "request id %q", r.GetRequestId())
	p.expect(len(r.GetEvents()) == p.problemsTold() || r.GetStatus() != nil, "events without a status that makes them true")
	if at := r.GetRequeueTime(); at != nil {
		p.expect(at.CheckValid() == nil && at.AsTime().After(p.req.GetNow().AsTime()), "I11: asks again at %v", at)
	}
}

// times reports timestamps after the end of the year 9999, which JSON cannot express.
func (p *promises) times() {
	_, err := protojson.Marshal(p.resp)
	p.expect(err == nil, "times: %v", err)
}

// atMost is a setting, or its default.
func atMost(setting int32) int {
	if setting == 0 {
		return 500
	}
	return int(setting)
}

func (p *promises) creation() {
	c := p.resp.GetCreate()
	if c == nil {
		return
	}
	wanted := p.resp.GetExplanation().GetFacts()
	p.expect(wanted.WantedActive != nil, "creates pods without wanting any")
	room := int64(wanted.GetWantedActive()) - int64(p.req.GetPods().GetActive()) - int64(p.req.GetInFlight().GetCreates())
	p.expect(c.GetCount() > 0 && int64(c.GetCount()) <= room, "I6: creates %d pods with room for %d", c.GetCount(), room)
	p.expect(wanted.GetWantedActive() <= p.req.GetSpec().GetParallelism(), "wants %d pods", wanted.GetWantedActive())
	most := atMost(p.req.GetSettings().GetMaxPodChanges())
	if _, spaced := deferredUntil(p.req, writeRoutineStatus); spaced && p.req.GetSpec().GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		most = max(1, most/2)
	}
	p.expect(int(c.GetCount()) <= most, "creates %d pods", c.GetCount())
	p.expect(len(p.resp.GetDelete())+len(p.resp.GetEnd()) == 0, "creates and deletes or ends")
	p.expect(!deferred(p.req, createPods), "creates before it may")
	spec := p.req.GetSpec()
	p.expect(!spec.GetSuspend() && !p.deleting(), "creates pods for a Job that is suspended or being deleted")
	if spec.GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		p.expect(c.GetIndexes() == nil, "creates indexes %s", indexText(c.GetIndexes()))
		return
	}
	set := indexes(c.GetIndexes())
	p.expect(set.Len() == int64(c.GetCount()), "creates %d pods for %d indexes", c.GetCount(), set.Len())
	p.expect(set.Below(spec.GetCompletions()).Len() == set.Len(), "creates indexes out of range: %s", indexText(c.GetIndexes()))
	taken := indexes(p.req.GetPods().GetActiveIndexes()).
		Union(indexes(p.req.GetInFlight().GetCreateIndexes())).
		Union(indexes(p.req.GetStatus().GetCompletedIndexes())).
		Union(indexes(p.req.GetStatus().GetFailedIndexes()))
	p.expect(set.Intersect(taken).Empty(), "creates indexes that are taken: %s", indexText(c.GetIndexes()))
}

// deleting reports whether the Job or its namespace is being deleted.
func (p *promises) deleting() bool {
	return p.req.GetSpec().GetDeleting() || p.req.GetNamespaceDeleting()
}

// fresh reports whether nothing shows that the Job has begun.
func (p *promises) fresh() bool {
	st := p.req.GetStatus()
	begun := st.GetStartTime() != nil || st.GetSucceeded()+st.GetFailed() > 0 || len(st.GetUncounted().GetSucceeded())+len(st.GetUncounted().GetFailed()) > 0 ||
		!indexes(st.GetCompletedIndexes()).Empty() ||
		slices.ContainsFunc(st.GetConditions(), func(c *jobpolicyv1.JobCondition) bool { return c.GetType() == "Suspended" })
	return !begun && p.podless()
}

func (p *promises) podless() bool {
	pods := p.req.GetPods()
	return max(pods.GetActive(), pods.GetTerminating(), p.req.GetInFlight().GetCreates()) == 0 && len(p.req.GetUnaccountedPods()) == 0 && p.req.GetUnlistedPods() == nil
}

func (p *promises) gang() {
	spec, groups, g := p.req.GetSpec(), p.req.GetSettings().GetPodGroups(), p.resp.GetGang()
	delegated := spec.GetControlled() && spec.GroupTemplateName != nil
	declared := !spec.GetControlled() && (groups == jobpolicyv1.PodGroups_POD_GROUPS_ALL || spec.GetScheduling() != nil)
	grouped := groups != 0 && !spec.GetHasSchedulingGroup() && (delegated || declared)
	if g == nil {
		p.expect(!grouped || p.resp.GetCreate() == nil, "creates pods of a group without saying so")
		return
	}
	p.expect(grouped && !p.deleting() && p.resp.GetVerdict() == nil, "a group for a Job that has none: %v", g)
	p.expect((g.TemplateName != nil) == delegated, "template name %v of a Job that is delegated: %t", g.TemplateName, delegated)
	p.expect(g.GetMayCreate() == p.fresh() || delegated && g.GetMayCreate() == p.podless(), "a group may be created: %t", g.GetMayCreate())
	p.expect(g.GetMinCount() <= g.GetMaxCount(), "a gang of %d to %d", g.GetMinCount(), g.GetMaxCount())
	gang := spec.GetScheduling().GetPolicy() == jobpolicyv1.SchedulingPolicy_SCHEDULING_POLICY_GANG
	p.expect((g.GetMinCount() > 0) == (gang || delegated), "a gang of %d; declared: %t", g.GetMinCount(), gang)
	if c := p.resp.GetCreate(); c != nil {
		p.expect(g.GetMaxCount() == g.GetMinCount(), "creates pods of a gang of %d to %d", g.GetMinCount(), g.GetMaxCount())
		most := max(1, spec.GetParallelism())
		if spec.Completions != nil {
			most = max(1, min(most, spec.GetCompletions()-p.resp.GetExplanation().GetFacts().GetSucceeded()))
		}
		p.expect(g.GetMinCount() <= most, "a gang of %d of which %d can run", g.GetMinCount(), most)
	}
}

// policy expects that what is wrong with the options is told, and that a Job that has not
// started waits.
func (p *promises) policy() {
	problems := p.req.GetSpec().GetOptionProblems()
	complete := p.resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE
	p.expect(!complete || p.problemsTold() == len(problems), "tells %d of %d problems", p.problemsTold(), len(problems))
	started := p.req.GetStatus().GetStartTime() != nil || !p.podless()
	if len(problems) == 0 || started || p.resp.GetVerdict() != nil {
		return
	}
	p.expect(p.resp.GetCreate() == nil && p.resp.GetStatus().GetStartTime() == nil, "starts a Job whose options cannot be read")
	waits := 0
	for _, w := range p.resp.GetExplanation().GetWaits() {
		if w.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_INVALID_POLICY {
			waits++
		}
	}
	idle := p.deleting() || p.req.GetSpec().GetSuspend() || isFinished(p.req.GetStatus())
	p.expect(idle || waits == 1, "a Job that does not start says so %d times", waits)
}

// problemsTold is how many events are about the options.
func (p *promises) problemsTold() int {
	told := 0
	for _, e := range p.resp.GetEvents() {
		if e.GetReason() == "InvalidPolicy" {
			told++
		}
	}
	return told
}

// lateStart says that a pod is deleted because it did not start only when the time that an option gives it is over.
func (p *promises) lateStart(d *jobpolicyv1.DeletePod, start *jobpolicyv1.PodStart) {
	counts := slices.ContainsFunc(p.req.GetSpec().GetOptions().GetNeverStarted(), func(n *jobpolicyv1.NeverStarted) bool {
		waited := p.req.GetNow().GetSeconds() - start.GetSince().GetSeconds()
		return n.GetProblem() == start.GetProblem() && n.GetAction() <= jobpolicyv1.NeverStartedAction_NEVER_STARTED_ACTION_COUNT && waited >= int64(n.GetAfterSeconds())
	})
	p.expect(counts, "deletes a pod with problem %v since %v", start.GetProblem(), start.GetSince())
}

// raises: a new pod has as much as the failed ones with the most, or one step more.
func (p *promises) raises() {
	option, most := p.req.GetSpec().GetOptions().GetNextTryResources(), map[int32]int32{}
	indexed := p.req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	for _, try := range p.req.GetRetry().GetFailedTries() {
		if !indexed || try.Index != nil {
			key := int32(0)
			if indexed {
				key = try.GetIndex()
			}
			most[key] = max(most[key], try.GetResourceStep())
		}
	}
	p.expect(option != nil || len(p.resp.GetCreate().GetRaised()) == 0, "raises what nobody asks for")
	if option == nil || p.resp.GetCreate() == nil {
		return
	}
	for _, pod := range answer.NewPods(p.resp.GetCreate()) {
		key := int32(0)
		if pod.Index != nil {
			key = *pod.Index
		}
		step := pod.Raised.GetStep()
		p.expect(step == most[key] || step == min(64, most[key]+1), "pod of index %d has step %d after %d", key, step, most[key])
		p.expect(pod.Raised == nil || pod.Raised.GetMax() == option.GetMax() && pod.Raised.GetMultiplier() > 1, "raises %v", pod.Raised)
	}
}

func (p *promises) deletion() {
	rows := map[string]*jobpolicyv1.ActivePod{}
	for _, pod := range slices.Concat(p.req.GetUnstartedPods(), p.req.GetActivePods().GetPods()) {
		rows[string(pod.GetUid())] = pod
	}
	n := len(p.resp.GetDelete()) + len(p.resp.GetEnd())
	p.expect(n <= atMost(p.req.GetSettings().GetMaxPodChanges()), "deletes and ends %d pods", n)
	p.expect(len(p.resp.GetDelete()) == 0 || !p.deleting(), "deletes pods of a Job that is being deleted")
	p.expect(len(p.resp.GetDelete()) == 0 || !deferred(p.req, deletePods), "deletes before it may")
	for _, d := range p.resp.GetDelete() {
		pod, listed := rows[string(d.GetUid())]
		p.expect(listed, "deletes %x, which is no active pod or twice", d.GetUid())
		if d.GetOnlyUnstarted() {
			p.lateStart(d, pod.GetStart())
		}
		delete(rows, string(d.GetUid()))
		p.expect(d.GetReason() != 0, "deletes without a reason")
		counts := d.GetReason() == jobpolicyv1.DeleteReason_DELETE_REASON_JOB_FINISHED || d.GetReason() == jobpolicyv1.DeleteReason_DELETE_REASON_NEVER_STARTED
		p.expect(d.GetReleaseFirst() == (pod.GetTracked() && !counts), "deletes with release_first %t for %s", d.GetReleaseFirst(), d.GetReason())
	}
}

// finishedPods expects that a Job keeps as many finished pods of each phase as it is to, and those that finished last.
func (p *promises) finishedPods() {
	chosen := p.resp.GetDeleteFinished()
	p.expect(len(chosen) <= atMost(p.req.GetSettings().GetMaxPodChanges()), "deletes %d finished pods", len(chosen))
	p.expect(len(chosen) == 0 || !p.deleting() && !deferred(p.req, jobpolicyv1.Step_STEP_DELETE_FINISHED_PODS), "deletes finished pods and must not")
	p.expect(len(chosen) == 0 || p.resp.GetVerdict() == nil, "deletes finished pods of a Job that ends")
	keep, pods := p.req.GetSpec().GetOptions().GetKeepFinishedPods(), p.req.GetFinishedPods()
	left := map[jobpolicyv1.PodPhase]int32{jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED: pods.GetSucceeded(), jobpolicyv1.PodPhase_POD_PHASE_FAILED: pods.GetFailed()}
	uncounted := p.req.GetStatus().GetUncounted()
	for i, uid := range chosen {
		j := slices.IndexFunc(pods.GetFirst(), func(pod *jobpolicyv1.FinishedPod) bool { return bytes.Equal(pod.GetUid(), uid) })
		p.expect(i == 0 || bytes.Compare(chosen[i-1], uid) < 0, "deletes finished pods out of order, or twice")
		p.expect(j >= 0 && !contains(uncounted.GetSucceeded(), uid) && !contains(uncounted.GetFailed(), uid), "deletes %x, which is not counted", uid)
		left[pods.GetFirst()[j].GetPhase()]--
	}
	if keep == nil {
		p.expect(len(chosen) == 0, "deletes finished pods, and the Job keeps all")
		return
	}
	p.expect(keep.Succeeded == nil && left[3] == pods.GetSucceeded() || left[3] >= min(keep.GetSucceeded(), pods.GetSucceeded()), "keeps %d", left[3])
	p.expect(keep.Failed == nil && left[4] == pods.GetFailed() || left[4] >= min(keep.GetFailed(), pods.GetFailed()), "keeps %d", left[4])
}

// changeLimit expects that the limit of one decision is named only where a larger one
// would change the decision.
func (p *promises) changeLimit() {
	const largest = 100_000 // that a setting may be
	limited := slices.ContainsFunc(p.resp.GetExplanation().GetWaits(), func(w *jobpolicyv1.Wait) bool {
		return w.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_CHANGE_LIMIT
	})
	larger := 4 * atMost(p.req.GetSettings().GetMaxPodChanges())
	if !limited || larger > largest {
		return
	}
	req := proto.CloneOf(p.req)
	if req.Settings == nil {
		req.Settings = &jobpolicyv1.Settings{}
	}
	req.Settings.MaxPodChanges = int32(larger)
	more := p.ask(req)
	changes := func(r *jobpolicyv1.DecideJobResponse) int {
		return int(r.GetCreate().GetCount()) + len(r.GetDelete()) + len(r.GetEnd())
	}
	before := changes(p.resp)
	p.expect(changes(more) > before, "changes %d pods because of a limit, and as many without it", before)
}

// ask asks another question, which must be a valid one.
func (p *promises) ask(req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobResponse {
	resp, err := engine.DecideJob(req)
	p.expect(err == nil, "another question: %v", err)
	return resp
}

func (p *promises) releases() {
	held := map[string]bool{}
	for _, pod := range p.req.GetUnaccountedPods() {
		held[string(pod.GetUid())] = true
	}
	for _, pod := range p.req.GetActivePods().GetPods() {
		if pod.GetTracked() {
			held[string(pod.GetUid())] = true
		}
	}
	for i, uid := range p.resp.GetRelease() {
		p.expect(held[string(uid)], "releases %x, which is not known to hold the finalizer", uid)
		p.expect(i == 0 || bytes.Compare(p.resp.GetRelease()[i-1], uid) < 0, "releases out of order, or twice")
	}
}

// recordedArePassedOn: a pod that the status has recorded is let go, whatever else waits.
// Otherwise it might never be counted.
func (p *promises) recordedArePassedOn() {
	if p.resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return
	}
	for _, pod := range p.req.GetUnaccountedPods() {
		same := func(uid []byte) bool { return bytes.Equal(uid, pod.GetUid()) }
		u := p.req.GetStatus().GetUncounted()
		if slices.ContainsFunc(u.GetSucceeded(), same) || slices.ContainsFunc(u.GetFailed(), same) {
			p.expect(slices.ContainsFunc(p.resp.GetRelease(), same), "pod %x is recorded and not released", pod.GetUid())
		}
	}
}

func (p *promises) statusCounts() {
	s := p.resp.GetStatus()
	if s == nil {
		return
	}
	p.expect(!proto.Equal(s, p.req.GetStatus()), "writes the status that is there")
	p.expect(s.GetReady() <= s.GetActive(), "I5: %d ready of %d active", s.GetReady(), s.GetActive())
	p.expect(!is(s, complete) || !is(s, failed), "I4: Complete and Failed")
	p.expect((s.GetCompletionTime() != nil) == is(s, complete) || p.req.GetStatus().GetCompletionTime() != nil, "I5: completion time %v", s.GetCompletionTime())
	p.expect(!isFinished(s) || (s.GetActive() == 0 && s.GetTerminating() == 0 && uncountedPods(s) == 0), "I4: finished before its pods")
	p.expect(!isFinished(p.req.GetStatus()), "changes the status of a finished Job")
	declared := (is(p.req.GetStatus(), criteriaMet) && is(s, complete)) || (is(p.req.GetStatus(), failureTarget) && is(s, failed))
	p.expect(!isFinished(s) || declared, "I4: a terminal condition before its interim condition was written")
	if err := conditionsRemoved(p.req.GetStatus(), s); err != nil {
		p.expect(false, "%v", err)
	}
}

func (p *promises) ledger() {
	s, before := p.resp.GetStatus(), p.req.GetStatus()
	if s == nil {
		return
	}
	p.expect(statusChange{new: s}.uncountedOnce(), "I3: a UID stands twice in uncounted")
	p.expect(uncountedPods(s) <= max(atMost(p.req.GetSettings().GetMaxUncountedPods()), uncountedPods(before)), "%d uncounted pods", uncountedPods(s))
	confirmed := map[string]bool{}
	for _, uid := range p.req.GetConfirmedReleases() {
		confirmed[string(uid)] = true
	}
	leftSucceeded := p.leavers(before.GetUncounted().GetSucceeded(), s.GetUncounted().GetSucceeded(), confirmed)
	leftFailed := p.leavers(before.GetUncounted().GetFailed(), s.GetUncounted().GetFailed(), confirmed)
	p.expect(sumsUp(before.GetFailed(), leftFailed, s.GetFailed()), "I2: failed goes from %d to %d for %d pods", before.GetFailed(), s.GetFailed(), leftFailed)
	if p.req.GetSpec().GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		p.expect(sumsUp(before.GetSucceeded(), leftSucceeded, s.GetSucceeded()), "I2: succeeded goes from %d to %d for %d pods",
			before.GetSucceeded(), s.GetSucceeded(), leftSucceeded)
		return
	}
	want := int32(indexes(s.GetCompletedIndexes()).Len())
	if p.req.GetSpec().GetCompletions() != p.req.GetSpec().GetParallelism() {
		want = max(want, before.GetSucceeded())
	}
	p.expect(s.GetSucceeded() == want, "%d succeeded, indexes %s", s.GetSucceeded(), indexText(s.GetCompletedIndexes()))
}

// leavers counts the UIDs that were removed from a list, and expects that each is
// confirmed.
func (p *promises) leavers(before, after [][]byte, confirmed map[string]bool) int {
	stay := map[string]bool{}
	for _, uid := range after {
		stay[string(uid)] = true
	}
	n := 0
	for _, uid := range before {
		if stay[string(uid)] {
			p.expect(!confirmed[string(uid)], "%x is confirmed and stays uncounted", uid)
			continue
		}
		n++
		p.expect(confirmed[string(uid)], "I2: %x leaves uncounted unconfirmed", uid)
	}
	return n
}

func sumsUp(before int32, n int, after int32) bool {
	return min(int64(before)+int64(n), 1<<31-1) == int64(after)
}

func (p *promises) explanation() {
	e := p.resp.GetExplanation()
	p.expect(e.GetSummary() != "", "no summary")
	for i, answer := range e.GetRules() {
		last := i == len(e.GetRules())-1
		p.expect(!answer.GetDecided() || (last && e.GetDecidingRule() == answer.GetRule()), "rule %s decided", answer.GetRule())
	}
	for _, w := range e.GetWaits() {
		p.expect(w.GetReason() != 0 && w.GetDetail() != "", "an unexplained wait")
	}
}

// end checks how the Job failed: every failure has an end, no success has one, and the condition says
// the same if it is asked for.
func (p *promises) end() {
	v := p.resp.GetVerdict()
	end, succeeds := v.GetEnd(), []jobpolicyv1.Rule{
		jobpolicyv1.Rule_RULE_SUCCESS_ALREADY_DECLARED, jobpolicyv1.Rule_RULE_SUCCESS_POLICY_MET, jobpolicyv1.Rule_RULE_COMPLETIONS_REACHED,
	}
	p.expect((end != nil) == (v != nil && !slices.Contains(succeeds, v.GetRule())), "verdict by %s, end %v", v.GetRule().Name(), end)
	if end == nil || v.GetRepeated() {
		return
	}
	p.expect(end.GetClass() != jobpolicyv1.EndClass_END_CLASS_UNSPECIFIED && end.GetRule() == v.GetRule(), "verdict by %s, end %v", v.GetRule().Name(), end)
	said, before := conditionOf(p.resp.GetStatus(), jobend.ConditionType), conditionOf(p.req.GetStatus(), jobend.ConditionType)
	if !p.req.GetSpec().GetOptions().GetEndCondition() {
		p.expect(proto.Equal(said, before), "nobody asked for %v", said)
		return
	}
	read, ok := jobend.Read(said.GetReason(), said.GetMessage())
	p.expect(ok && proto.Equal(read, end), "the condition says %v, the verdict %v", said, end)
	p.endFailures(end)
}

// conditionOf is the condition of a type; nil if there is none.
func conditionOf(status *jobpolicyv1.JobStatus, conditionType string) *jobpolicyv1.JobCondition {
	for _, c := range status.GetConditions() {
		if c.GetType() == conditionType {
			return c
		}
	}
	return nil
}

// wireBytes is the deterministic wire form.
func wireBytes(t interface{ Fatal(...any) }, m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shuffled is the request with its rows in another order.
func shuffled(t *rapid.T, req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobRequest {
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "shuffle"), 0))
	other := proto.CloneOf(req)
	shuffle(rnd, other.UnaccountedPods)
	shuffle(rnd, other.GetActivePods().GetPods())
	shuffle(rnd, other.ConfirmedReleases)
	shuffle(rnd, other.Deferrals)
	shuffle(rnd, other.GetRetry().GetRecentFailures())
	shuffle(rnd, other.GetRetry().GetFailedTries())
	shuffle(rnd, other.GetFinishedPods().GetFirst())
	return other
}

func shuffle[E any](rnd *rand.Rand, list []E) {
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

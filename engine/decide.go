package engine

import (
	"fmt"
	"slices"

	"jobpolicy.dev/engine/internal/waits"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// DecideJob decides what to do about one Job. It reads only req, does not change it,
// and gives the same answer to the same request.
//
// Errors are *InvalidRequestError, for a request that breaks the contract, and
// *UnsupportedError, for one with fields or values that this engine does not know.
// How a Job ends is never an error.
func DecideJob(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	if err := checkRequest(req, func(c checker) { c.decideJob(req) }); err != nil {
		return nil, err
	}
	s := newSnapshot(req)
	resp := decide(s)
	resp.RequestId = req.GetRequestId()
	resp.Explanation = trimExplanation(resp.GetExplanation(), req.GetSettings().GetExplain())
	return resp, nil
}

func decide(s *snapshot) *jobpolicyv1.DecideJobResponse {
	if condition, ok := finished(s.status); ok {
		return settleFinished(s, condition)
	}
	t := takeTally(s)
	v, answers := askRules(facts{s, t})
	deletions := planDeletions(s, t, v)
	if needsRestarts(s, t, v) {
		deletions = deletions.needRowsOf(s, s.pods.GetActive())
	}
	if len(deletions.needs) > 0 {
		return incomplete(explain(s, t, answers, deletions), deletions.needs)
	}
	l := keepLedger(s, t, v, deletions)
	p := planCreations(s, t, deletions, l)
	p.gang = planGang(s, t, v, p)
	p = p.prune(s, t, v)
	end := jobEnd(s, t, v)
	pub := publish(s, t, v, p, l, end)
	d := deliver(s, v, p, l, pub)
	resp := assemble(s, v, p, l, d, explain(s, t, answers, p))
	resp.Verdict = verdictMessage(s, v, end)
	return resp
}

// assemble builds the response from the parts and sets its disposition.
func assemble(s *snapshot, v verdict, p plan, l ledger, d delivery, e *jobpolicyv1.Explanation) *jobpolicyv1.DecideJobResponse {
	waiting := waits.List(slices.Concat(p.waits, d.waits, furtherWaits(s, v, l)))
	e.Waits = waiting
	resp := &jobpolicyv1.DecideJobResponse{
		Disposition:       jobpolicyv1.Disposition_DISPOSITION_SETTLED,
		Gang:              p.gang,
		Create:            p.create,
		Delete:            deletePods(p),
		End:               endPods(p),
		Release:           d.release,
		DeleteFinished:    p.finished,
		Events:            append(d.events, policyEvents(s)...),
		Explanation:       e,
		PodFailureActions: failureActions(d.actions),
		RequeueTime:       waiting.RequeueTime(s.now),
	}
	if !sameStatus(d.status, s.status) {
		resp.Status = d.status
	}
	if (resp.Gang != nil && isNewJob(s)) || resp.Create != nil || len(resp.Delete)+len(resp.End) > 0 || resp.Status != nil || len(resp.Release)+len(resp.DeleteFinished) > 0 {
		resp.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
	}
	resp.FollowUp = followUp(s, p, resp)
	e.Summary = summarize(s, v, p, resp)
	return resp
}

// verdictMessage is the verdict as the contract has it; nil if there is none.
func verdictMessage(s *snapshot, v verdict, end *jobpolicyv1.JobEnd) *jobpolicyv1.Verdict {
	if !v.reached() {
		return nil
	}
	return &jobpolicyv1.Verdict{Rule: v.rule, Repeated: interimWritten(s, v), PolicyRuleIndex: v.policyRule, End: end}
}

// furtherWaits are the waits that come neither from the plan nor from the delivery.
func furtherWaits(s *snapshot, v verdict, l ledger) []*jobpolicyv1.Wait {
	var waits []*jobpolicyv1.Wait
	if l.full {
		waits = append(waits, wait(jobpolicyv1.WaitReason_WAIT_REASON_LEDGER_FULL,
			"uncounted pods in the status: %d, as many as it may hold", s.maxUncountedPods))
	}
	if at, ok := s.activeDeadline(); ok && !v.reached() && !s.held() {
		waits = append(waits, waitUntil(jobpolicyv1.WaitReason_WAIT_REASON_DEADLINE, at,
			"the Job may be active for %ds", s.spec.GetActiveDeadlineSeconds()))
	}
	if w := startWait(s); w != nil && !v.reached() {
		waits = append(waits, w)
	}
	waits = append(waits, terminationWaits(s)...)
	if w := unstartedWait(s); w != nil && !v.reached() {
		waits = append(waits, w)
	}
	return waits
}

func deletePods(p plan) []*jobpolicyv1.DeletePod {
	var deletes []*jobpolicyv1.DeletePod
	for _, d := range p.deletions {
		deletes = append(deletes, d.message(p.releaseFirst))
	}
	return deletes
}

func endPods(p plan) []*jobpolicyv1.EndPod {
	var ends []*jobpolicyv1.EndPod
	for _, e := range p.ends {
		ends = append(ends, e.message())
	}
	return ends
}

// failureActions lists counts in order of action.
func failureActions(actions map[jobpolicyv1.PodFailurePolicyAction]int32) []*jobpolicyv1.PodFailureActionCount {
	var counts []*jobpolicyv1.PodFailureActionCount
	for action := range int32(len(jobpolicyv1.PodFailurePolicyAction_name)) {
		if n := actions[jobpolicyv1.PodFailurePolicyAction(action)]; n > 0 {
			counts = append(counts, &jobpolicyv1.PodFailureActionCount{
				Action: jobpolicyv1.PodFailurePolicyAction(action), Count: n,
			})
		}
	}
	return counts
}

// incomplete asks for more data.
func incomplete(e *jobpolicyv1.Explanation, needs []jobpolicyv1.Requirement) *jobpolicyv1.DecideJobResponse {
	e.Summary = "the rows of the active pods are needed to choose among them"
	return &jobpolicyv1.DecideJobResponse{
		Disposition:  jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE,
		Requirements: needs,
		Explanation:  e,
	}
}

// settleFinished answers for a Job that is Complete or Failed: its status never
// changes again, but no pod may keep the finalizer.
func settleFinished(s *snapshot, condition string) *jobpolicyv1.DecideJobResponse {
	e := &jobpolicyv1.Explanation{
		Summary:    fmt.Sprintf("the Job is %s; nothing to do", condition),
		Generation: s.req.GetJob().GetGeneration(),
	}
	p := unchanged(s).needRowsOf(s, s.pods.GetTrackedActive())
	if len(p.needs) > 0 {
		return incomplete(e, p.needs)
	}
	resp := &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED, Explanation: e}
	resp.Release = unaccountedUIDs(s)
	if n := len(resp.Release); n > 0 {
		resp.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		e.Summary = fmt.Sprintf("the Job is %s; release pods left with the finalizer: %d", condition, n)
	}
	resp.Events = policyEvents(s)
	expire(s, condition, resp)
	resp.FollowUp = followUp(s, plan{}, resp)
	return resp
}

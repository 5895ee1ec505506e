package engine

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Limits of the contract for partial questions; each stands in the proto file
// beside its field.
const maxQuestions = 10_000

// MatchPodFailurePolicy says how a pod failure policy handles failed pods, as
// DecideJob does. Errors are those of DecideJob.
func MatchPodFailurePolicy(req *jobpolicyv1.MatchPodFailurePolicyRequest) (*jobpolicyv1.MatchPodFailurePolicyResponse, error) {
	if err := checkQuestion(req, func(c *checker) {
		c.bytesBetween("namespace", req.GetNamespace(), 0, maxNameBytes)
		c.askedPolicy(req.GetPolicy())
		each(c, "failures", req.GetFailures(), c.failure)
	}); err != nil {
		return nil, err
	}
	policy := readFailurePolicy(req.GetPolicy(), req.GetNamespace(), defaultPodNoun)
	resp := &jobpolicyv1.MatchPodFailurePolicyResponse{}
	for _, f := range req.GetFailures() {
		resp.Matches = append(resp.Matches, policy.match(f).message())
	}
	return resp, nil
}

func (m policyMatch) message() *jobpolicyv1.PodFailureMatch {
	if !m.matched() {
		return &jobpolicyv1.PodFailureMatch{Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_COUNT}
	}
	return &jobpolicyv1.PodFailureMatch{Action: m.action, RuleIndex: proto.Int32(int32(m.rule)), Message: m.cause}
}

// MatchSuccessPolicy says whether indexes that succeeded meet a success policy,
// as DecideJob does. Errors are those of DecideJob.
func MatchSuccessPolicy(req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	if err := checkQuestion(req, func(c *checker) {
		c.within("policy")
		c.successPolicy(req.GetPolicy())
		c.leave()
		c.notNegative("completions", int64(req.GetCompletions()))
		c.indexSet("succeeded_indexes", req.GetSucceededIndexes())
	}); err != nil {
		return nil, err
	}
	succeeded := readSet(req.GetSucceededIndexes()).Below(req.GetCompletions())
	i, met := metSuccessRule(req.GetPolicy(), succeeded, req.GetCompletions())
	if !met {
		return &jobpolicyv1.MatchSuccessPolicyResponse{}, nil
	}
	return &jobpolicyv1.MatchSuccessPolicyResponse{RuleIndex: proto.Int32(int32(i)), Message: metRuleText(i)}, nil
}

// ComputePodBackoff says when the next pod may be created after others failed,
// as DecideJob does. Errors are those of DecideJob.
func ComputePodBackoff(req *jobpolicyv1.ComputePodBackoffRequest) (*jobpolicyv1.ComputePodBackoffResponse, error) {
	if err := checkQuestion(req, func(c *checker) {
		c.requiredTime("now", req.GetNow())
		c.askedPolicy(req.GetPolicy())
		c.settings(req.GetSettings())
		each(c, "histories", req.GetHistories(), func(h *jobpolicyv1.FailureHistory) {
			c.retry(h.GetRetry())
			c.notNegative("earlier_failures", int64(h.GetEarlierFailures()))
		})
	}); err != nil {
		return nil, err
	}
	now, policy, b := req.GetNow().AsTime(), readFailurePolicy(req.GetPolicy(), "", defaultPodNoun), readBackoff(req.GetSettings())
	resp := &jobpolicyv1.ComputePodBackoffResponse{}
	for _, h := range req.GetHistories() {
		failures := readFailures(h.GetRetry(), policy, readSuccesses(now, h.GetRetry())).after(int64(h.GetEarlierFailures()))
		answer := &jobpolicyv1.PodBackoff{ConsecutiveFailures: failures.consecutive}
		if failures.consecutive > 0 {
			answer.Delay = durationpb.New(b.delay(failures.consecutive))
		}
		if at, waiting := b.nextPod(now, failures); waiting {
			answer.CreateNotBefore = timestamp.Of(at)
		}
		resp.Backoffs = append(resp.Backoffs, answer)
	}
	return resp, nil
}

// checkQuestion is the gateway of partial questions. A question is small, and
// each of its fields may change the answer: none may be unknown.
func checkQuestion(req proto.Message, check func(*checker)) error {
	if err := UnknownFields("", req.ProtoReflect()); err != nil {
		return err
	}
	c := &checker{}
	check(c)
	if len(c.violations) > 0 {
		return &InvalidRequestError{Violations: c.violations}
	}
	return nil
}

// askedPolicy checks a pod failure policy that comes without its Job.
func (c *checker) askedPolicy(policy *jobpolicyv1.PodFailurePolicy) {
	c.within("policy")
	c.failurePolicy(policy, true)
	c.leave()
}

// each checks a list of questions.
func each[T any](c *checker, list string, items []T, check func(T)) {
	if !c.length(list, len(items), maxQuestions) {
		return
	}
	for i, item := range items {
		if c.full() {
			return
		}
		c.enter(list, i)
		check(item)
		c.leave()
	}
}

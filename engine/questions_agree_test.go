package engine_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The tests of questions_agree… ask the engine a partial question that a decision had
// to answer too, and compare the answer with the decision. Each counts the draws in
// which there was something to compare: a test that compares nothing fails.

// agreement draws requests, prepares each, and compares the decision with an
// answer. compare returns whether there was something to compare.
func agreement(t *testing.T, prepare func(*request), compare func(*rapid.T, *request, *jobpolicyv1.DecideJobResponse) bool) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t)
		req.Deferrals = nil
		prepare(req)
		resp, err := engine.DecideJob(req)
		if err != nil {
			t.Fatal(err)
		}
		if compare(t, req, resp) {
			compared++
		}
	})
	if compared < 20 {
		t.Errorf("only %d draws had something to compare", compared)
	}
}

// undecided removes from a request most of what ends a Job or keeps it from creating
// pods. It keeps the failed pods.
func undecided(req *request) {
	spec := req.GetSpec()
	req.NamespaceDeleting = false
	spec.Suspend, spec.Deleting, spec.ActiveDeadlineSeconds, spec.BackoffLimit, spec.MaxFailedIndexes = false, false, nil, 1<<31-1, nil
	spec.Parallelism, spec.OptionProblems = max(spec.Parallelism, 3), nil
	req.Pods = &jobpolicyv1.PodSummary{Terminating: req.GetPods().GetTerminating()}
	req.ActivePods, req.UnstartedPods, req.UnlistedPods, req.InFlight, req.NamespaceDeleting = nil, nil, nil, nil, false
	if status := req.GetStatus(); status != nil {
		status.Conditions, status.Succeeded, status.CompletedIndexes, status.FailedIndexes, status.Uncounted = nil, 0, nil, nil, nil
	}
}

// answered finds what a rule said; nil if it was not asked.
func answered(resp *jobpolicyv1.DecideJobResponse, rule string) *jobpolicyv1.RuleAnswer {
	for _, a := range resp.GetExplanation().GetRules() {
		if a.GetRule().Name() == rule {
			return a
		}
	}
	return nil
}

// newlyFailed are the rows of pods that failed and are not recorded yet, in the order in
// which the engine looks at them. A pod that is being deleted counts as failed, unless
// the Job replaces only pods that have ended: then once its termination deadline has passed.
func newlyFailed(req *request) []*jobpolicyv1.UnaccountedPod {
	recorded := func(pod *jobpolicyv1.UnaccountedPod) bool {
		same := func(uid []byte) bool { return bytes.Equal(uid, pod.GetUid()) }
		uncounted := req.GetStatus().GetUncounted()
		return slices.ContainsFunc(uncounted.GetSucceeded(), same) || slices.ContainsFunc(uncounted.GetFailed(), same)
	}
	spec := req.GetSpec()
	byEnd := spec.GetPodFailurePolicy() != nil || spec.GetPodReplacementPolicy() == jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED
	failed := slices.DeleteFunc(slices.Clone(req.GetUnaccountedPods()), func(pod *jobpolicyv1.UnaccountedPod) bool {
		ended := pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_FAILED
		return recorded(pod) || leavesWithJob(req, pod) || pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || (byEnd && !ended && !overdue(req, pod))
	})
	slices.SortFunc(failed, func(a, b *jobpolicyv1.UnaccountedPod) int {
		return cmp.Or(cmp.Compare(a.GetIndex(), b.GetIndex()), bytes.Compare(a.GetUid(), b.GetUid()))
	})
	return failed
}

// overdue reports whether the deletion of a pod that has not ended took longer than the Job waits, and its node does not
// matter or does not work.
func overdue(req *request, pod *jobpolicyv1.UnaccountedPod) bool {
	deadline := time.Duration(req.GetSpec().GetOptions().GetTerminationDeadlineSeconds()) * time.Second
	anyNode := req.GetSpec().GetOptions().GetTerminationDeadlineNode() != jobpolicyv1.TerminationDeadlineNode_TERMINATION_DEADLINE_NODE_NOT_READY
	return slices.ContainsFunc(req.GetTerminatingPods(), func(p *jobpolicyv1.TerminatingPod) bool {
		return (anyNode || p.GetNode() >= jobpolicyv1.NodeState_NODE_STATE_NOT_READY) && bytes.Equal(p.GetUid(), pod.GetUid()) && !p.GetDueTime().AsTime().Add(deadline).After(req.GetNow().AsTime())
	})
}

func inRange(req *request, pod *jobpolicyv1.UnaccountedPod) bool {
	return req.GetSpec().GetCompletionMode() != jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED ||
		(pod.Index != nil && pod.GetIndex() < req.GetSpec().GetCompletions())
}

// A decision fails the Job for the first failed pod of which MatchPodFailurePolicy
// says FAIL_JOB, in its words, and counts those of which it does not say IGNORE.
func TestMatchPodFailurePolicyIsWhatDecisionsDo(t *testing.T) {
	noneRecorded := func(req *request) {
		if uncounted := req.GetStatus().GetUncounted(); uncounted != nil {
			uncounted.Failed = nil
		}
	}
	agreement(t, noneRecorded, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		verdict := answered(resp, "podFailurePolicyMatched")
		if verdict == nil || req.GetSpec().GetPodFailurePolicy() == nil {
			return false
		}
		pods := newlyFailed(req)
		question := &jobpolicyv1.MatchPodFailurePolicyRequest{
			Policy: req.GetSpec().GetPodFailurePolicy(), Namespace: req.GetJob().GetNamespace(),
		}
		for _, pod := range pods {
			question.Failures = append(question.Failures, pod.GetFailure())
		}
		answer, err := engine.MatchPodFailurePolicy(question)
		if err != nil {
			t.Fatal(err)
		}
		message, counted := "", int64(req.GetStatus().GetFailed())
		for i, m := range answer.GetMatches() {
			if message == "" && m.GetAction() == jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB {
				message = m.GetMessage()
			}
			if inRange(req, pods[i]) && m.GetAction() != jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE {
				counted++
			}
		}
		if verdict.GetDecided() != (message != "") || (message != "" && verdict.GetDetail() != message) {
			t.Fatalf("the decision says %v, the answer %v", verdict, answer)
		}
		if got := resp.GetExplanation().GetFacts().GetFailed(); req.GetUnlistedPods().GetFailed() == 0 && int64(got) != min(counted, 1<<31-1) {
			t.Fatalf("the decision counts %d failed pods, by the answer there are %d", got, counted)
		}
		return len(pods) > 0
	})
}

// A decision lets the Job succeed by the rule that MatchSuccessPolicy names, of
// the indexes that its status lists as completed.
func TestMatchSuccessPolicyIsWhatDecisionsDo(t *testing.T) {
	met, unmet := 0, 0
	withPolicy := func(req *request) {
		undecided(req)
		if req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
			req.Spec.SuccessPolicy = &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{
				{SucceededIndexes: ranges(4, 5)},
				{SucceededCount: proto.Int32(2)},
				{SucceededIndexes: ranges(0, 2), SucceededCount: proto.Int32(1)},
			}}
		}
	}
	agreement(t, withPolicy, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		verdict := answered(resp, "successPolicyMet")
		if verdict == nil || req.GetSpec().GetSuccessPolicy() == nil || req.GetUnlistedPods() != nil || resp.GetStatus() == nil {
			return false
		}
		answers, err := engine.MatchSuccessPolicy(&jobpolicyv1.MatchSuccessPolicyRequest{Jobs: []*jobpolicyv1.SuccessPolicyProgress{{
			Policy: req.GetSpec().GetSuccessPolicy(), Completions: req.GetSpec().GetCompletions(),
			SucceededIndexes: resp.GetStatus().GetCompletedIndexes(),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		answer := answers.GetMatches()[0]
		if verdict.GetDecided() != (answer.RuleIndex != nil) {
			t.Fatalf("the decision says %v, the answer %v", verdict, answer)
		}
		if answer.RuleIndex == nil {
			unmet++
			return true
		}
		met++
		said := slices.ContainsFunc(resp.GetStatus().GetConditions(), func(c *jobpolicyv1.JobCondition) bool {
			return c.GetType() == criteriaMet && c.GetMessage() == answer.GetMessage()
		})
		if !said {
			t.Fatalf("no condition %s says %q:\n%s", criteriaMet, answer.GetMessage(), render(resp.GetStatus()))
		}
		return true
	})
	if met == 0 || unmet == 0 {
		t.Errorf("policies met: %d, not met: %d; want some of both", met, unmet)
	}
}

// A decision waits as long as ComputePodBackoff says, if the facts for the retry
// delay are those of the rows.
func TestComputePodBackoffIsWhatDecisionsDo(t *testing.T) {
	waited, created := 0, 0
	withoutRows := func(req *request) {
		undecided(req)
		req.UnaccountedPods = nil
	}
	agreement(t, withoutRows, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		if req.GetSpec().BackoffLimitPerIndex != nil {
			return false
		}
		answer := askBackoff(t, req, &jobpolicyv1.FailureHistory{Retry: req.GetRetry()})
		if facts := resp.GetExplanation().GetFacts(); facts != nil && facts.GetConsecutiveFailures() != answer.GetConsecutiveFailures() {
			t.Fatalf("the decision counts %d failures in a row, the answer %d", facts.GetConsecutiveFailures(), answer.GetConsecutiveFailures())
		}
		hold := backoffWait(resp)
		switch {
		case hold != nil:
			waited++
			if answer.CreateNotBefore == nil || !hold.GetUntil().AsTime().Equal(answer.GetCreateNotBefore().AsTime()) {
				t.Fatalf("the decision waits until %v, the answer is %v", hold.GetUntil(), answer)
			}
		case resp.GetCreate() != nil:
			created++
			if answer.CreateNotBefore != nil {
				t.Fatalf("the decision creates pods, the answer is %v", answer)
			}
		}
		return hold != nil || resp.GetCreate() != nil
	})
	if waited == 0 || created == 0 {
		t.Errorf("decisions that waited: %d, that created pods: %d; want some of both", waited, created)
	}
}

// With limits per index, a decision waits for the first index that may have a pod
// again, and creates none for an index that may not.
func TestComputePodBackoffOfIndexesIsWhatDecisionsDo(t *testing.T) {
	waited, created := 0, 0
	agreement(t, undecided, func(t *rapid.T, req *request, resp *jobpolicyv1.DecideJobResponse) bool {
		if req.GetSpec().BackoffLimitPerIndex == nil || req.GetUnlistedPods() != nil {
			return false
		}
		last := map[int32]*jobpolicyv1.PodBackoff{}
		for _, pod := range newlyFailed(req) {
			if !inRange(req, pod) {
				continue
			}
			if _, several := last[pod.GetIndex()]; several {
				return false // which of them failed last is the decision's business
			}
			last[pod.GetIndex()] = askBackoff(t, req, &jobpolicyv1.FailureHistory{
				Retry:           &jobpolicyv1.RetryFacts{RecentFailures: []*jobpolicyv1.PodFailureFact{{FinishedTime: pod.GetFinishedTime(), Failure: pod.GetFailure()}}},
				Index:           pod.Index,
				EarlierFailures: int32(min(int64(pod.GetIndexFailureCount())+int64(pod.GetIndexIgnoredFailureCount()), 1<<31-1)),
			})
		}
		for ix := range indexes(resp.GetCreate().GetIndexes()).All {
			if b, failed := last[ix]; failed {
				created++
				if b.CreateNotBefore != nil {
					t.Fatalf("the decision creates a pod for index %d, the answer is %v", ix, b)
				}
			}
		}
		hold := backoffWait(resp)
		if hold == nil {
			return len(last) > 0
		}
		waited++
		for _, b := range last {
			if b.CreateNotBefore != nil && b.GetCreateNotBefore().AsTime().Equal(hold.GetUntil().AsTime()) {
				return true
			}
		}
		t.Fatalf("the decision waits until %v, which no answer says: %v", hold.GetUntil(), last)
		return false
	})
	if waited == 0 || created == 0 {
		t.Errorf("decisions that waited: %d, pods created again: %d; want some of both", waited, created)
	}
}

func askBackoff(t *rapid.T, req *request, h *jobpolicyv1.FailureHistory) *jobpolicyv1.PodBackoff {
	h.JobUid = req.GetJob().GetUid()
	answer, err := engine.ComputePodBackoff(&jobpolicyv1.ComputePodBackoffRequest{
		Now: req.GetNow(), Policy: req.GetSpec().GetPodFailurePolicy(), Settings: req.GetSettings(),
		RetryDelay: req.GetSpec().GetOptions().GetRetryDelay(), Histories: []*jobpolicyv1.FailureHistory{h},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetBackoffs()[0]
}

// backoffWait is the wait for the retry delay; nil if there is none.
func backoffWait(resp *jobpolicyv1.DecideJobResponse) *jobpolicyv1.Wait {
	for _, w := range resp.GetExplanation().GetWaits() {
		if w.GetReason() == jobpolicyv1.WaitReason_WAIT_REASON_POD_FAILURE_BACKOFF {
			return w
		}
	}
	return nil
}

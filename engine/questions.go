package engine

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/engine/internal/check"
	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxQuestions is how many failures, histories or Jobs one request may ask about. The
// proto files state it at these fields.
const maxQuestions = 10_000

// MatchPodFailurePolicy says how a pod failure policy handles failed pods, as
// DecideJob does. Errors are those of DecideJob.
func MatchPodFailurePolicy(req *jobpolicyv1.MatchPodFailurePolicyRequest) (*jobpolicyv1.MatchPodFailurePolicyResponse, error) {
	if err := checkRequest(req, func(c checker) {
		c.BytesBetween("namespace", req.GetNamespace(), 0, check.MaxNameBytes)
		c.askedPolicy(req.GetPolicy())
		check.Each(c.Checker, "failures", maxQuestions, req.GetFailures(), c.failure)
		c.ruleNames("rule_names", req.GetRuleNames(), req.GetPolicy())
		check.Each(c.Checker, "rule_names", maxPolicyRules, req.GetRuleNames(), func(name string) { c.BytesBetween("", name, 0, maxRuleNameBytes) })
	}); err != nil {
		return nil, err
	}
	policy := readFailurePolicy(req.GetPolicy(), req.GetNamespace())
	resp := &jobpolicyv1.MatchPodFailurePolicyResponse{}
	for _, f := range req.GetFailures() {
		m := policy.match(f)
		answer := m.message()
		answer.Class = classify(f, m)
		if m.matched() {
			answer.RuleName = nameOfRule(req.GetRuleNames(), m.rule)
		}
		resp.Matches = append(resp.Matches, answer)
	}
	return resp, nil
}

func (m policyMatch) message() *jobpolicyv1.PodFailureMatch {
	if !m.matched() {
		return &jobpolicyv1.PodFailureMatch{Action: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_COUNT}
	}
	return &jobpolicyv1.PodFailureMatch{Action: m.action, RuleIndex: proto.Int32(int32(m.rule)), Message: m.cause}
}

// MatchSuccessPolicy says whether indexes that succeeded meet success policies,
// as DecideJob does. Errors are those of DecideJob.
func MatchSuccessPolicy(req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	if err := checkRequest(req, func(c checker) { check.Each(c.Checker, "jobs", maxItems, req.GetJobs(), c.successPolicyProgress) }); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.MatchSuccessPolicyResponse{}
	for _, job := range req.GetJobs() {
		match := &jobpolicyv1.SuccessPolicyMatch{}
		succeeded := readSet(job.GetSucceededIndexes()).Below(job.GetCompletions())
		if i, met := metSuccessRule(job.GetPolicy(), succeeded, job.GetCompletions()); met {
			match.RuleIndex, match.Message = proto.Int32(int32(i)), metRuleText(i)
		}
		resp.Matches = append(resp.Matches, match)
	}
	return resp, nil
}

func (c checker) successPolicyProgress(job *jobpolicyv1.SuccessPolicyProgress) {
	c.Within("policy")
	c.successPolicy(job.GetPolicy())
	c.Leave()
	c.NotNegative("completions", int64(job.GetCompletions()))
	c.indexSet("succeeded_indexes", job.GetSucceededIndexes())
}

// ComputePodBackoff says when the next pod may be created after others failed,
// as DecideJob does. Errors are those of DecideJob.
func ComputePodBackoff(req *jobpolicyv1.ComputePodBackoffRequest) (*jobpolicyv1.ComputePodBackoffResponse, error) {
	if err := checkRequest(req, func(c checker) {
		c.RequiredTime("now", req.GetNow())
		c.askedPolicy(req.GetPolicy())
		c.settings(req.GetSettings())
		check.Options(c.Checker, "retry_delay", req.GetRetryDelay())
		check.Each(c.Checker, "histories", maxQuestions, req.GetHistories(), c.history)
	}); err != nil {
		return nil, err
	}
	now, policy := req.GetNow().AsTime(), readFailurePolicy(req.GetPolicy(), "")
	resp := &jobpolicyv1.ComputePodBackoffResponse{}
	for _, h := range req.GetHistories() {
		b := readBackoff(req.GetSettings(), req.GetRetryDelay(), h.GetJobUid())
		failures := readFailures(h.GetRetry(), policy, readSuccesses(now, h.GetRetry())).after(int64(h.GetEarlierFailures())).of(h.Index)
		answer := &jobpolicyv1.PodBackoff{ConsecutiveFailures: failures.consecutive}
		if failures.consecutive > 0 {
			answer.Delay = durationpb.New(b.delay(failures))
		}
		if at, waiting := b.nextPod(now, failures); waiting {
			answer.CreateNotBefore = timestamp.Of(at)
		}
		resp.Backoffs = append(resp.Backoffs, answer)
	}
	return resp, nil
}

func (c checker) history(h *jobpolicyv1.FailureHistory) {
	c.retry(h.GetRetry())
	c.NotNegative("earlier_failures", int64(h.GetEarlierFailures()))
	if len(h.GetJobUid()) > 0 {
		c.uid("job_uid", h.GetJobUid())
	}
	if h.Index != nil {
		c.Between("index", int64(h.GetIndex()), 0, indexset.Max)
	}
}

// ChoosePodsToDelete says which pods to delete first, as DecideJob does. Errors
// are those of DecideJob.
func ChoosePodsToDelete(req *jobpolicyv1.ChoosePodsToDeleteRequest) (*jobpolicyv1.ChoosePodsToDeleteResponse, error) {
	if err := checkRequest(req, func(c checker) { check.Each(c.Checker, "jobs", maxItems, req.GetJobs(), c.scaleDown) }); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.ChoosePodsToDeleteResponse{}
	for _, job := range req.GetJobs() {
		choice := &jobpolicyv1.PodsToDelete{}
		for _, r := range choosePodsToDelete(job.GetPods(), int(job.GetExcess()), job.Completions) {
			choice.Delete = append(choice.Delete, r.message(true))
		}
		resp.Choices = append(resp.Choices, choice)
	}
	return resp, nil
}

func (c checker) scaleDown(job *jobpolicyv1.ScaleDown) {
	if !c.Require(job != nil, "", "is required") {
		return
	}
	c.NotNegative("excess", int64(job.GetExcess()))
	c.NotNegative("completions", int64(job.GetCompletions()))
	seen := newUIDs(min(len(job.GetPods()), maxRows))
	check.Each(c.Checker, "pods", maxRows, job.GetPods(), func(pod *jobpolicyv1.ActivePod) { c.activePod(pod, seen) })
}

// ComputeIndexes says which indexes are completed, failed and missing, as
// DecideJob does. Errors are those of DecideJob.
func ComputeIndexes(req *jobpolicyv1.ComputeIndexesRequest) (*jobpolicyv1.ComputeIndexesResponse, error) {
	if err := checkRequest(req, func(c checker) { check.Each(c.Checker, "jobs", maxItems, req.GetJobs(), c.indexes) }); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.ComputeIndexesResponse{}
	for _, job := range req.GetJobs() {
		resp.Progress = append(resp.Progress, computeIndexes(job))
	}
	return resp, nil
}

func computeIndexes(job *jobpolicyv1.JobIndexes) *jobpolicyv1.IndexProgress {
	completions := job.GetCompletions()
	read := func(m *jobpolicyv1.IndexSet) indexset.Set { return readSet(m).Below(completions) }
	progress := indexProgress{read(job.GetCompletedIndexes()), read(job.GetFailedIndexes())}.
		and(read(job.GetNewlySucceeded()), read(job.GetNewlyFailed()))
	busy, limit := read(job.GetBusyIndexes()), completions
	if n := job.GetMaxMissing(); n > 0 {
		limit = n
	}
	return &jobpolicyv1.IndexProgress{
		CompletedIndexes: progress.succeededIndexes.Message(),
		FailedIndexes:    progress.failedIndexes.Message(),
		MissingIndexes:   progress.missing(busy, limit, completions).Message(),
		MissingCount:     clamp32(int64(completions) - progress.taken(busy).Len()),
	}
}

func (c checker) indexes(job *jobpolicyv1.JobIndexes) {
	c.NotNegative("completions", int64(job.GetCompletions()))
	c.NotNegative("max_missing", int64(job.GetMaxMissing()))
	ranges := 0
	for _, set := range []struct {
		field string
		set   *jobpolicyv1.IndexSet
	}{
		{"completed_indexes", job.GetCompletedIndexes()},
		{"failed_indexes", job.GetFailedIndexes()},
		{"newly_succeeded", job.GetNewlySucceeded()},
		{"newly_failed", job.GetNewlyFailed()},
		{"busy_indexes", job.GetBusyIndexes()},
	} {
		ranges += len(set.set.GetRanges())
		if !c.Require(ranges <= maxRanges, set.field, "must have at most %d ranges together with the sets before it, has %d", maxRanges, ranges) {
			return
		}
		c.indexSet(set.field, set.set)
	}
}

// ComputeDeadlines says until when Jobs may be active, and until when finished
// ones are kept, as DecideJob does. Errors are those of DecideJob.
func ComputeDeadlines(req *jobpolicyv1.ComputeDeadlinesRequest) (*jobpolicyv1.ComputeDeadlinesResponse, error) {
	if err := checkRequest(req, func(c checker) {
		c.RequiredTime("now", req.GetNow())
		check.Each(c.Checker, "jobs", maxQuestions, req.GetJobs(), c.lifetime)
	}); err != nil {
		return nil, err
	}
	resp := &jobpolicyv1.ComputeDeadlinesResponse{}
	for _, job := range req.GetJobs() {
		resp.Deadlines = append(resp.Deadlines, newLifetime(job.GetSpec(), job.GetStatus(), req.GetNow()).deadlines(job.GetHasRun()))
	}
	return resp, nil
}

func (l lifetime) deadlines(hasRun bool) *jobpolicyv1.JobDeadlines {
	d := &jobpolicyv1.JobDeadlines{}
	condition, isFinished := finished(l.status)
	if !isFinished {
		if !l.declared() && (hasRun || !l.waitsForOptions()) {
			l.addDeadlines(d, hasRun)
		}
		return d
	}
	if l.spec.GetDeleting() || l.optionsLost() {
		return d
	}
	e := l.expiration(condition)
	d.TtlSource, d.Expired = e.source, e.over(l.now)
	if e.limited && e.known {
		d.ExpirationTime = timestamp.Of(e.at)
	}
	return d
}

// addDeadlines adds the deadlines of a Job of which it is not decided how it ends.
func (l lifetime) addDeadlines(d *jobpolicyv1.JobDeadlines, hasRun bool) {
	if l.deadlineRuns() {
		_, d.ActiveDeadlinePassed = l.overDeadline()
		if at, ok := l.activeDeadline(); ok {
			d.ActiveDeadline = timestamp.Of(at)
		}
	}
	if l.hasStartDeadline() && !l.spec.GetDeleting() && !hasRun {
		_, d.StartDeadlinePassed = l.over(l.spec.GetOptions().GetStartDeadlineSeconds())
		if at, ok := l.startDeadline(); ok {
			d.StartDeadline = timestamp.Of(at)
		}
	}
}

// lifetime checks the fields that the deadlines of a Job are computed from.
func (c checker) lifetime(job *jobpolicyv1.JobLifetime) {
	c.Require(job.GetSpec() != nil, "spec", "is required")
	c.NotNegative("spec.active_deadline_seconds", job.GetSpec().GetActiveDeadlineSeconds())
	c.NotNegative("spec.ttl_seconds_after_finished", int64(job.GetSpec().GetTtlSecondsAfterFinished()))
	check.Options(c.Checker, "spec.options", job.GetSpec().GetOptions())
	c.OptionalTime("status.start_time", job.GetStatus().GetStartTime())
	c.conditions(job.GetStatus().GetConditions())
}

// askedPolicy checks a pod failure policy that is sent without its Job.
func (c checker) askedPolicy(policy *jobpolicyv1.PodFailurePolicy) {
	c.Within("policy")
	c.failurePolicy(policy, true)
	c.Leave()
}

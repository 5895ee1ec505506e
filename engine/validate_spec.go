package engine

import (
	"math"

	"jobpolicy.dev/engine/internal/check"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func (c checker) spec(spec *jobpolicyv1.JobSpec) {
	if !c.Require(spec != nil, "spec", "is required") {
		return
	}
	c.NotNegative("spec.parallelism", int64(spec.GetParallelism()))
	c.NotNegative("spec.completions", int64(spec.GetCompletions()))
	c.NotNegative("spec.backoff_limit", int64(spec.GetBackoffLimit()))
	c.NotNegative("spec.backoff_limit_per_index", int64(spec.GetBackoffLimitPerIndex()))
	c.NotNegative("spec.max_failed_indexes", int64(spec.GetMaxFailedIndexes()))
	c.NotNegative("spec.active_deadline_seconds", spec.GetActiveDeadlineSeconds())
	c.NotNegative("spec.ttl_seconds_after_finished", int64(spec.GetTtlSecondsAfterFinished()))
	check.Options(c.Checker, "spec.options", spec.GetOptions())
	c.OptionProblems("spec.option_problems", spec.GetOptionProblems())
	c.BytesBetween("spec.group_template_name", spec.GetGroupTemplateName(), 0, maxTemplateNameBytes)
	if scheduling := spec.GetScheduling(); scheduling != nil && scheduling.MinCount != nil {
		c.Between("spec.scheduling.min_count", int64(scheduling.GetMinCount()), 1, math.MaxInt32)
	}
	c.specCombinations(spec)
	c.Within("spec.pod_failure_policy")
	c.failurePolicy(spec.GetPodFailurePolicy(), spec.BackoffLimitPerIndex != nil)
	c.Leave()
	c.ruleNames("spec.options.failure_rule_names", spec.GetOptions().GetFailureRuleNames(), spec.GetPodFailurePolicy())
	for _, n := range spec.GetOptions().GetNeverStarted() {
		c.Require(n.GetAction() != failIndex || spec.BackoffLimitPerIndex != nil,
			"spec.options.never_started", "FAIL_INDEX needs spec.backoff_limit_per_index")
	}
	c.Within("spec.success_policy")
	c.successPolicy(spec.GetSuccessPolicy())
	c.Leave()
}

func (c checker) specCombinations(spec *jobpolicyv1.JobSpec) {
	indexed := spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	c.Require(!indexed || spec.Completions != nil, "spec.completions", "is required with COMPLETION_MODE_INDEXED")
	c.Require(indexed || spec.BackoffLimitPerIndex == nil, "spec.backoff_limit_per_index", "needs COMPLETION_MODE_INDEXED")
	c.Require(spec.BackoffLimitPerIndex != nil || spec.MaxFailedIndexes == nil, "spec.max_failed_indexes",
		"needs spec.backoff_limit_per_index")
	c.Require(indexed || spec.GetSuccessPolicy() == nil, "spec.success_policy", "needs COMPLETION_MODE_INDEXED")
	never := spec.GetRestartPolicy() != jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE
	c.Require(never || spec.GetPodFailurePolicy() == nil, "spec.pod_failure_policy", "needs RESTART_POLICY_NEVER")
	c.Require(spec.GetPodFailurePolicy() == nil ||
		spec.GetPodReplacementPolicy() != jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_TERMINATING_OR_FAILED,
		"spec.pod_replacement_policy", "must be POD_REPLACEMENT_POLICY_FAILED or absent with spec.pod_failure_policy")
}

func (c checker) failurePolicy(policy *jobpolicyv1.PodFailurePolicy, perIndex bool) {
	check.Each(c.Checker, "rules", maxPolicyRules, policy.GetRules(), func(rule *jobpolicyv1.PodFailurePolicyRule) { c.failureRule(rule, perIndex) })
}

// ruleNames checks that there are as many names as rules, or none.
func (c checker) ruleNames(field string, names []string, policy *jobpolicyv1.PodFailurePolicy) {
	rules := len(policy.GetRules())
	c.Require(len(names) == 0 || len(names) == rules, field,
		"must have as many names as the pod failure policy has rules (%d), or none, has %d", rules, len(names))
}

func (c checker) failureRule(rule *jobpolicyv1.PodFailurePolicyRule, perIndex bool) {
	c.Require(rule.GetAction() != 0, "action", "is required")
	c.Require(rule.GetAction() != jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX || perIndex,
		"action", "FAIL_INDEX needs spec.backoff_limit_per_index")
	codes, patterns := rule.GetOnExitCodes(), rule.GetOnPodConditions()
	c.Require((codes != nil) != (len(patterns) > 0), "on_exit_codes",
		"exactly one of on_exit_codes and on_pod_conditions must be set")
	if codes != nil {
		c.Require(codes.GetOperator() != 0, "on_exit_codes.operator", "is required")
		c.Between("on_exit_codes.values", int64(len(codes.GetValues())), 1, maxExitCodes)
	}
	c.patterns("on_pod_conditions", patterns, maxPolicyPatterns)
}

func (c checker) patterns(field string, patterns []*jobpolicyv1.PodConditionPattern, most int) {
	check.Each(c.Checker, field, most, patterns, func(p *jobpolicyv1.PodConditionPattern) {
		c.BytesBetween("type", p.GetType(), 1, maxTypeBytes)
		c.Require(p.GetStatus() != 0, "status", "is required")
	})
}

func (c checker) successPolicy(policy *jobpolicyv1.SuccessPolicy) {
	check.Each(c.Checker, "rules", maxPolicyRules, policy.GetRules(), func(rule *jobpolicyv1.SuccessPolicyRule) {
		c.indexSet("succeeded_indexes", rule.GetSucceededIndexes())
		c.NotNegative("succeeded_count", int64(rule.GetSucceededCount()))
		c.Require(rule.GetSucceededIndexes() != nil || (rule != nil && rule.SucceededCount != nil), "succeeded_indexes",
			"one of succeeded_indexes and succeeded_count must be set")
	})
}

func (c checker) status(status *jobpolicyv1.JobStatus) {
	c.OptionalTime("status.start_time", status.GetStartTime())
	c.OptionalTime("status.completion_time", status.GetCompletionTime())
	c.NotNegative("status.active", int64(status.GetActive()))
	c.NotNegative("status.ready", int64(status.GetReady()))
	c.NotNegative("status.terminating", int64(status.GetTerminating()))
	c.NotNegative("status.succeeded", int64(status.GetSucceeded()))
	c.NotNegative("status.failed", int64(status.GetFailed()))
	c.indexSet("status.completed_indexes", status.GetCompletedIndexes())
	c.indexSet("status.failed_indexes", status.GetFailedIndexes())
	c.uncounted(status.GetUncounted())
	c.conditions(status.GetConditions())
}

// conditionsCount checks how many conditions there are. The engine's own do not count,
// because a status that it wrote must be accepted.
func (c checker) conditionsCount(field string, conditions []*jobpolicyv1.JobCondition) bool {
	others := 0
	for _, condition := range conditions {
		if !ownCondition(condition.GetType()) {
			others++
		}
	}
	return c.Require(others <= maxConditions, field,
		"must have at most %d entries of types that the engine does not write, has %d", maxConditions, others)
}

func (c checker) conditions(conditions []*jobpolicyv1.JobCondition) {
	if !c.conditionsCount("status.conditions", conditions) {
		return
	}
	seen := map[string]bool{}
	for i, condition := range conditions {
		c.Enter("status.conditions", i)
		c.condition(condition)
		if seen[condition.GetType()] {
			c.Violated("type", "is a duplicate of an earlier condition: %q", condition.GetType())
		}
		seen[condition.GetType()] = true
		c.Leave()
	}
}

func (c checker) condition(condition *jobpolicyv1.JobCondition) {
	c.BytesBetween("type", condition.GetType(), 1, maxTypeBytes)
	c.Require(condition.GetStatus() != 0, "status", "is required")
	c.BytesBetween("reason", condition.GetReason(), 0, maxReasonBytes)
	c.BytesBetween("message", condition.GetMessage(), 0, maxMessageBytes)
	c.OptionalTime("last_probe_time", condition.GetLastProbeTime())
	c.OptionalTime("last_transition_time", condition.GetLastTransitionTime())
}

func (c checker) uncounted(u *jobpolicyv1.UncountedTerminatedPods) {
	seen := map[string]bool{}
	once := func(uid []byte) {
		c.uid("", uid)
		c.Require(!seen[string(uid)], "", "is a duplicate: status.uncounted may list a UID only once")
		seen[string(uid)] = true
	}
	check.Each(c.Checker, "status.uncounted.succeeded", maxRows, u.GetSucceeded(), once)
	check.Each(c.Checker, "status.uncounted.failed", maxRows, u.GetFailed(), once)
}

package engine

import (
	"math"

	"jobpolicy.dev/engine/annotation"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func (c *checker) spec(spec *jobpolicyv1.JobSpec) {
	if !c.require(spec != nil, "spec", "is required") {
		return
	}
	c.notNegative("spec.parallelism", int64(spec.GetParallelism()))
	c.notNegative("spec.completions", int64(spec.GetCompletions()))
	c.notNegative("spec.backoff_limit", int64(spec.GetBackoffLimit()))
	c.notNegative("spec.backoff_limit_per_index", int64(spec.GetBackoffLimitPerIndex()))
	c.notNegative("spec.max_failed_indexes", int64(spec.GetMaxFailedIndexes()))
	c.notNegative("spec.active_deadline_seconds", spec.GetActiveDeadlineSeconds())
	c.notNegative("spec.ttl_seconds_after_finished", int64(spec.GetTtlSecondsAfterFinished()))
	c.annotations("spec.annotations", spec.GetAnnotations())
	c.bytesBetween("spec.group_template_name", spec.GetGroupTemplateName(), 0, annotation.MaxValueBytes)
	if scheduling := spec.GetScheduling(); scheduling != nil && scheduling.MinCount != nil {
		c.between("spec.scheduling.min_count", int64(scheduling.GetMinCount()), 1, math.MaxInt32)
	}
	c.specCombinations(spec)
	c.within("spec.pod_failure_policy")
	c.failurePolicy(spec.GetPodFailurePolicy(), spec.BackoffLimitPerIndex != nil)
	c.leave()
	c.within("spec.success_policy")
	c.successPolicy(spec.GetSuccessPolicy())
	c.leave()
}

func (c *checker) annotations(field string, annotations map[string]string) {
	if problem := annotation.Problem(annotations); problem != "" {
		c.violated(field, "%s", problem)
	}
}

func (c *checker) specCombinations(spec *jobpolicyv1.JobSpec) {
	indexed := spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	c.require(!indexed || spec.Completions != nil, "spec.completions", "is required with COMPLETION_MODE_INDEXED")
	c.require(indexed || spec.BackoffLimitPerIndex == nil, "spec.backoff_limit_per_index", "needs COMPLETION_MODE_INDEXED")
	c.require(spec.BackoffLimitPerIndex != nil || spec.MaxFailedIndexes == nil, "spec.max_failed_indexes",
		"needs spec.backoff_limit_per_index")
	c.require(indexed || spec.GetSuccessPolicy() == nil, "spec.success_policy", "needs COMPLETION_MODE_INDEXED")
	never := spec.GetRestartPolicy() != jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE
	c.require(never || spec.GetPodFailurePolicy() == nil, "spec.pod_failure_policy", "needs RESTART_POLICY_NEVER")
	c.require(spec.GetPodFailurePolicy() == nil ||
		spec.GetPodReplacementPolicy() != jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_TERMINATING_OR_FAILED,
		"spec.pod_replacement_policy", "must be POD_REPLACEMENT_POLICY_FAILED or absent with spec.pod_failure_policy")
}

func (c *checker) failurePolicy(policy *jobpolicyv1.PodFailurePolicy, perIndex bool) {
	each(c, "rules", maxPolicyRules, policy.GetRules(), func(rule *jobpolicyv1.PodFailurePolicyRule) { c.failureRule(rule, perIndex) })
}

func (c *checker) failureRule(rule *jobpolicyv1.PodFailurePolicyRule, perIndex bool) {
	c.require(rule.GetAction() != 0, "action", "is required")
	c.require(rule.GetAction() != jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX || perIndex,
		"action", "FAIL_INDEX needs spec.backoff_limit_per_index")
	codes, patterns := rule.GetOnExitCodes(), rule.GetOnPodConditions()
	c.require((codes != nil) != (len(patterns) > 0), "on_exit_codes",
		"exactly one of on_exit_codes and on_pod_conditions must be set")
	if codes != nil {
		c.require(codes.GetOperator() != 0, "on_exit_codes.operator", "is required")
		c.between("on_exit_codes.values", int64(len(codes.GetValues())), 1, maxExitCodes)
	}
	c.patterns("on_pod_conditions", patterns, maxPolicyPatterns)
}

func (c *checker) patterns(field string, patterns []*jobpolicyv1.PodConditionPattern, most int) {
	each(c, field, most, patterns, func(p *jobpolicyv1.PodConditionPattern) {
		c.bytesBetween("type", p.GetType(), 1, maxTypeBytes)
		c.require(p.GetStatus() != 0, "status", "is required")
	})
}

func (c *checker) successPolicy(policy *jobpolicyv1.SuccessPolicy) {
	each(c, "rules", maxPolicyRules, policy.GetRules(), func(rule *jobpolicyv1.SuccessPolicyRule) {
		c.indexSet("succeeded_indexes", rule.GetSucceededIndexes())
		c.notNegative("succeeded_count", int64(rule.GetSucceededCount()))
		c.require(rule.GetSucceededIndexes() != nil || (rule != nil && rule.SucceededCount != nil), "succeeded_indexes",
			"one of succeeded_indexes and succeeded_count must be set")
	})
}

func (c *checker) status(status *jobpolicyv1.JobStatus) {
	c.optionalTime("status.start_time", status.GetStartTime())
	c.optionalTime("status.completion_time", status.GetCompletionTime())
	c.notNegative("status.active", int64(status.GetActive()))
	c.notNegative("status.ready", int64(status.GetReady()))
	c.notNegative("status.terminating", int64(status.GetTerminating()))
	c.notNegative("status.succeeded", int64(status.GetSucceeded()))
	c.notNegative("status.failed", int64(status.GetFailed()))
	c.indexSet("status.completed_indexes", status.GetCompletedIndexes())
	c.indexSet("status.failed_indexes", status.GetFailedIndexes())
	c.uncounted(status.GetUncounted())
	c.conditions(status.GetConditions())
}

// conditionsCount checks how many conditions there are. The engine's own do not count,
// because a status that it wrote must be accepted.
func (c *checker) conditionsCount(field string, conditions []*jobpolicyv1.JobCondition) bool {
	others := 0
	for _, condition := range conditions {
		if !ownCondition(condition.GetType()) {
			others++
		}
	}
	return c.require(others <= maxConditions, field,
		"must have at most %d entries of types that the engine does not write, has %d", maxConditions, others)
}

func (c *checker) conditions(conditions []*jobpolicyv1.JobCondition) {
	if !c.conditionsCount("status.conditions", conditions) {
		return
	}
	seen := map[string]bool{}
	for i, condition := range conditions {
		c.enter("status.conditions", i)
		c.condition(condition)
		if seen[condition.GetType()] {
			c.violated("type", "is a duplicate of an earlier condition: %q", condition.GetType())
		}
		seen[condition.GetType()] = true
		c.leave()
	}
}

func (c *checker) condition(condition *jobpolicyv1.JobCondition) {
	c.bytesBetween("type", condition.GetType(), 1, maxTypeBytes)
	c.require(condition.GetStatus() != 0, "status", "is required")
	c.bytesBetween("reason", condition.GetReason(), 0, maxReasonBytes)
	c.bytesBetween("message", condition.GetMessage(), 0, maxMessageBytes)
	c.optionalTime("last_probe_time", condition.GetLastProbeTime())
	c.optionalTime("last_transition_time", condition.GetLastTransitionTime())
}

func (c *checker) uncounted(u *jobpolicyv1.UncountedTerminatedPods) {
	seen := map[string]bool{}
	once := func(uid []byte) {
		c.uid("", uid)
		c.require(!seen[string(uid)], "", "is a duplicate: status.uncounted may list a UID only once")
		seen[string(uid)] = true
	}
	each(c, "status.uncounted.succeeded", maxRows, u.GetSucceeded(), once)
	each(c, "status.uncounted.failed", maxRows, u.GetFailed(), once)
}

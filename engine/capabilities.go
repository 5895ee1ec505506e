package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// Capabilities lists what this engine decides on.
func Capabilities() []jobpolicyv1.Capability {
	return []jobpolicyv1.Capability{
		jobpolicyv1.Capability_CAPABILITY_CAPABILITIES,
		jobpolicyv1.Capability_CAPABILITY_NON_INDEXED,
		jobpolicyv1.Capability_CAPABILITY_INDEXED,
		jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT,
		jobpolicyv1.Capability_CAPABILITY_ACTIVE_DEADLINE,
		jobpolicyv1.Capability_CAPABILITY_SUSPEND,
		jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT_PER_INDEX,
		jobpolicyv1.Capability_CAPABILITY_POD_FAILURE_POLICY,
		jobpolicyv1.Capability_CAPABILITY_SUCCESS_POLICY,
		jobpolicyv1.Capability_CAPABILITY_POD_REPLACEMENT_POLICY,
		jobpolicyv1.Capability_CAPABILITY_POD_GROUPS,
		jobpolicyv1.Capability_CAPABILITY_CHECK_JOB_STATUS,
		jobpolicyv1.Capability_CAPABILITY_TTL_AFTER_FINISHED,
		jobpolicyv1.Capability_CAPABILITY_CRON_JOB,
		jobpolicyv1.Capability_CAPABILITY_PARTIAL_QUESTIONS,
		jobpolicyv1.Capability_CAPABILITY_OPTIONS,
		jobpolicyv1.Capability_CAPABILITY_CLUSTER_GROUPS,
		jobpolicyv1.Capability_CAPABILITY_TERMINATION_DEADLINE_NODE,
	}
}

package wire

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The enumerations of the API and of the contract. A value that the contract does not have
// becomes the default of the function that converts it, or else UNSPECIFIED, which the
// engine refuses where it needs a value.
var (
	conditionStatuses = map[corev1.ConditionStatus]jobpolicyv1.ConditionStatus{
		corev1.ConditionTrue:    jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE,
		corev1.ConditionFalse:   jobpolicyv1.ConditionStatus_CONDITION_STATUS_FALSE,
		corev1.ConditionUnknown: jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN,
	}
	podPhases = map[corev1.PodPhase]jobpolicyv1.PodPhase{
		corev1.PodPending:   jobpolicyv1.PodPhase_POD_PHASE_PENDING,
		corev1.PodRunning:   jobpolicyv1.PodPhase_POD_PHASE_RUNNING,
		corev1.PodSucceeded: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED,
		corev1.PodFailed:    jobpolicyv1.PodPhase_POD_PHASE_FAILED,
		corev1.PodUnknown:   jobpolicyv1.PodPhase_POD_PHASE_UNKNOWN,
	}
	restartPolicies = map[corev1.RestartPolicy]jobpolicyv1.RestartPolicy{
		corev1.RestartPolicyNever:     jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
		corev1.RestartPolicyOnFailure: jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE,
	}
	failurePolicyActions = map[batchv1.PodFailurePolicyAction]jobpolicyv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionFailJob:   jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_JOB,
		batchv1.PodFailurePolicyActionFailIndex: jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_FAIL_INDEX,
		batchv1.PodFailurePolicyActionIgnore:    jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_IGNORE,
		batchv1.PodFailurePolicyActionCount:     jobpolicyv1.PodFailurePolicyAction_POD_FAILURE_POLICY_ACTION_COUNT,
	}
	exitCodeOperators = map[batchv1.PodFailurePolicyOnExitCodesOperator]jobpolicyv1.ExitCodeOperator{
		batchv1.PodFailurePolicyOnExitCodesOpIn:    jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_IN,
		batchv1.PodFailurePolicyOnExitCodesOpNotIn: jobpolicyv1.ExitCodeOperator_EXIT_CODE_OPERATOR_NOT_IN,
	}
	concurrencyPolicies = map[batchv1.ConcurrencyPolicy]jobpolicyv1.ConcurrencyPolicy{
		batchv1.ForbidConcurrent:  jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_FORBID,
		batchv1.ReplaceConcurrent: jobpolicyv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REPLACE,
	}
)

// nameOf is the API's name of a value of the contract; "" if it has none.
func nameOf[N ~string, V comparable](names map[N]V, value V) N {
	for name, v := range names {
		if v == value {
			return name
		}
	}
	return ""
}

// PodPhase is the phase of a pod. One that no kubelet has touched yet may have none, and
// is pending.
func PodPhase(phase corev1.PodPhase) jobpolicyv1.PodPhase {
	return cmp.Or(podPhases[phase], jobpolicyv1.PodPhase_POD_PHASE_PENDING)
}

// ActionName is the name of a pod failure policy's action in the API; "" if it has none.
func ActionName(action jobpolicyv1.PodFailurePolicyAction) string {
	return string(nameOf(failurePolicyActions, action))
}

func conditionStatusMessage(s corev1.ConditionStatus) jobpolicyv1.ConditionStatus {
	return cmp.Or(conditionStatuses[s], jobpolicyv1.ConditionStatus_CONDITION_STATUS_UNKNOWN)
}

func apiConditionStatus(s jobpolicyv1.ConditionStatus) corev1.ConditionStatus {
	return cmp.Or(nameOf(conditionStatuses, s), corev1.ConditionUnknown)
}

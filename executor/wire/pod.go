package wire

import (
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// PodPhase maps a pod's phase; a pod that no kubelet has touched yet may have none
// and is pending.
func PodPhase(pod *podcache.Pod) jobpolicyv1.PodPhase {
	switch pod.Phase() {
	case corev1.PodRunning:
		return jobpolicyv1.PodPhase_POD_PHASE_RUNNING
	case corev1.PodSucceeded:
		return jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
	case corev1.PodFailed:
		return jobpolicyv1.PodPhase_POD_PHASE_FAILED
	case corev1.PodUnknown:
		return jobpolicyv1.PodPhase_POD_PHASE_UNKNOWN
	default:
		return jobpolicyv1.PodPhase_POD_PHASE_PENDING
	}
}

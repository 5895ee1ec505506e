package wire

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
)

// One entry more than the contract takes would make every request about the Job
// invalid.
func TestAFailureKeepsWithinTheContract(t *testing.T) {
	policy := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42},
	}}}}
	pod := &corev1.Pod{}
	for n := range int32(2000) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: strings.Repeat("c", 300), State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: n}},
		})
	}
	for n := range 400 {
		kind := corev1.PodConditionType(fmt.Sprintf("example.com/%d", n))
		policy.Rules = append(policy.Rules, batchv1.PodFailurePolicyRule{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: kind, Status: corev1.ConditionTrue}},
		})
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	got := PodFailure(podcache.From(pod), policy)
	if n := len(got.Conditions); n != maxPodConditions {
		t.Errorf("%d conditions, want %d", n, maxPodConditions)
	}
	if n := len(got.ContainerExits); n != maxContainerExits {
		t.Errorf("%d exits, want %d", n, maxContainerExits)
	}
	for _, exit := range got.ContainerExits {
		if n := len(exit.ContainerName); n > maxContainerNameBytes {
			t.Fatalf("a container's name has %d bytes, want at most %d", n, maxContainerNameBytes)
		}
	}
}

package hostnode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// A container is restarted when the kubelet's own function says so, except for an init
// container that succeeded.
func TestRestartsAsByTheKubelet(t *testing.T) {
	for _, pod := range []corev1.RestartPolicy{never, onFailure, always} {
		for _, own := range []corev1.ContainerRestartPolicy{
			"", corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyAlways,
		} {
			for _, operator := range []corev1.ContainerRestartRuleOnExitCodesOperator{
				"", corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn,
			} {
				spec := &corev1.Container{}
				if own != "" {
					spec.RestartPolicy = &own
				}
				if own != "" && operator != "" {
					spec.RestartPolicyRules = []corev1.ContainerRestartRule{{
						Action:    corev1.ContainerRestartRuleActionRestart,
						ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: []int32{1, 42}},
					}}
				}
				for _, code := range []int32{0, 1, 2, 42} {
					want := podutil.ContainerShouldRestart(*spec, corev1.PodSpec{RestartPolicy: pod}, code)
					for role, want := range map[role]bool{roleMain: want, roleInit: want && code != 0} {
						c := &container{spec: spec, role: role}
						if got := c.restartsAfter(code, pod); got != want {
							t.Errorf("pod %s, container %q, rule %q, role %d, exit code %d: restarts %v, want %v", pod, own, operator, role, code, got, want)
						}
					}
				}
			}
		}
	}
}

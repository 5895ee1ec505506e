package wire

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
)

// The facts of a pod that has no deadline of its own take no memory for it.
func TestOnlyADeadlineOfThePodsOwnTakesMemory(t *testing.T) {
	allocations := func(deadline *int64) float64 {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: deadline}}
		pod.UID = "00000000-0000-0000-0000-000000000001"
		cached := podcache.From(pod)
		return testing.AllocsPerRun(100, func() { PodFacts(cached) })
	}
	without, with := allocations(nil), allocations(new(int64(60)))
	if with != without+1 {
		t.Errorf("%v allocations without a deadline and %v with one; want one more", without, with)
	}
}

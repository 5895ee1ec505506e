package tracker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestHinderedPodsAreSummedUp(t *testing.T) {
	version := 0
	job := New(Key{}, nil)
	see := func(n int, waits string, end corev1.PodPhase) {
		version++
		job.ObservePod(podOf(n, version, inPhase(end), func(pod *corev1.Pod) {
			switch waits {
			case "Unschedulable":
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: waits}}
			default:
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waits}}}}
			}
		}), Watch)
	}
	steps := []struct {
		pod   int
		waits string
		phase corev1.PodPhase
		want  Hindered
	}{
		{pod: 1, waits: "ContainerCreating", phase: corev1.PodPending},
		{pod: 1, waits: "ImagePullBackOff", phase: corev1.PodPending, want: Hindered{1, "ImagePullBackOff"}},
		{pod: 2, waits: "Unschedulable", phase: corev1.PodPending, want: Hindered{2, "ImagePullBackOff"}},
		{pod: 3, waits: "Unschedulable", phase: corev1.PodPending, want: Hindered{3, "Unschedulable"}},
		{pod: 2, waits: "", phase: corev1.PodRunning, want: Hindered{2, "ImagePullBackOff"}},
		{pod: 1, waits: "ErrImagePull", phase: corev1.PodPending, want: Hindered{2, "ErrImagePull"}},
		{pod: 3, waits: "Unschedulable", phase: corev1.PodFailed, want: Hindered{1, "ErrImagePull"}},
		{pod: 1, waits: "", phase: corev1.PodRunning},
	}
	for i, s := range steps {
		see(s.pod, s.waits, s.phase)
		if got := job.Hindered(); got != s.want {
			t.Errorf("step %d: %+v, want %+v", i, got, s.want)
		}
	}
}

func TestCensusListsPodsUpToABound(t *testing.T) {
	job := New(Key{}, nil)
	for i := range 3 {
		job.ObservePod(podOf(i, 1, inPhase(corev1.PodRunning)), Watch)
	}
	for most, want := range map[int]int{0: 0, 2: 0, 3: 3} {
		if c := job.Census(most); c.Known != 3 || len(c.Pods) != want || c.Summary.GetActive() != 3 {
			t.Errorf("at most %d: %d known, %d listed, %d active; want 3, %d, 3", most, c.Known, len(c.Pods), c.Summary.GetActive(), want)
		}
	}
}

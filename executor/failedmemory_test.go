package executor

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
)

// BenchmarkFailedPodMemory says how many bytes of heap each failed pod costs whose container has left a long termination
// message: of a Job that does not ask for it, and of one that does.
func BenchmarkFailedPodMemory(b *testing.B) {
	for name, keep := range map[string]bool{"unused": false, "kept": true} {
		b.Run(name, func(b *testing.B) {
			const pods = 20_000
			job := testJob()
			for b.Loop() {
				before := heap()
				kept := make([]*podcache.Pod, pods)
				for n := range kept {
					kept[n] = podcache.From(overTheWire(b, failedPod(runningPod(job, n), keep)))
				}
				b.ReportMetric(float64(heap()-before)/pods, "heap-B/pod")
				runtime.KeepAlive(kept)
			}
		})
	}
}

// failedPod is the pod with a container that failed and left a message of the greatest length that a kubelet reads.
func failedPod(pod *corev1.Pod, keep bool) *corev1.Pod {
	if keep {
		pod.Annotations["jobpolicy.dev/keep-termination-message"] = "true"
	}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now(), Message: strings.Repeat("a line of a long message\n", 160) + strings.Repeat("x", 96),
	}}
	return pod
}

package executor

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// runningPod is a pod of an Indexed Job as a kubelet reports it.
func runningPod(job *batchv1.Job, n int) *corev1.Pod {
	pod := wire.NewPod{Index: int32(n)}.From(job)
	pod.Name, pod.UID, pod.ResourceVersion = fmt.Sprintf("job-%d-abcde", n), testUID(n), strconv.Itoa(1_000_000+n)
	pod.CreationTimestamp = metav1.Now()
	pod.Spec.NodeName = fmt.Sprintf("node-%d", n%1000)
	pod.Status.Phase = corev1.PodRunning
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: true, Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

// BenchmarkPodMemory says how many bytes of heap each running pod of a large Job
// costs: the informer's store, and the Job's tracker.
func BenchmarkPodMemory(b *testing.B) {
	const pods = 100_000
	job := testJob(func(j *batchv1.Job) {
		mode := batchv1.IndexedCompletion
		j.Spec.CompletionMode = &mode
		j.Spec.Selector.MatchLabels = map[string]string{batchv1.ControllerUidLabel: string(j.UID)}
		j.Spec.Template.Labels = map[string]string{
			batchv1.ControllerUidLabel: string(j.UID), batchv1.JobNameLabel: j.Name, "controller-uid": string(j.UID), "job-name": j.Name,
		}
	})
	for b.Loop() {
		before := heap()
		store, tr := cache.NewStore(cache.MetaNamespaceKeyFunc), tracker.New(tracker.Key{}, nil)
		tr.SetPolicy(tracker.PodPolicy(job))
		for n := range pods {
			kept := podcache.From(overTheWire(b, runningPod(job, n)))
			if err := store.Add(kept); err != nil {
				b.Fatal(err)
			}
			tr.ObservePod(kept, tracker.Watch)
		}
		b.ReportMetric(float64(heap()-before)/pods, "heap-B/pod")
		runtime.KeepAlive(store)
		runtime.KeepAlive(tr)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// overTheWire returns the pod as a client receives it, every text a string of
// its own.
func overTheWire(b *testing.B, pod *corev1.Pod) *corev1.Pod {
	data, err := pod.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	received := &corev1.Pod{}
	if err := received.Unmarshal(data); err != nil {
		b.Fatal(err)
	}
	return received
}

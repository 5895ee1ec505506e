package executor

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
)

// enlarge adds n items to a Job and its pod, of a kind that the API server does not limit.
var enlarge = map[string]func(n int, job *batchv1.Job, pod *corev1.Pod){
	"labels": func(n int, job *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, fmt.Sprint("k", i), "v")
		}
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	},
	"requirements": func(n int, job *batchv1.Job, _ *corev1.Pod) {
		job.Spec.Selector = &metav1.LabelSelector{}
		for range n {
			job.Spec.Selector.MatchExpressions = append(job.Spec.Selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "k", Operator: metav1.LabelSelectorOpDoesNotExist})
		}
	},
	"owners": func(n int, _ *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "X", Name: "x", UID: testUID(1000 + i)})
		}
	},
	"finalizers": func(n int, _ *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			pod.Finalizers = append(pod.Finalizers, fmt.Sprint("example.dev/", i))
		}
	},
	"annotations": func(n int, job *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, fmt.Sprint("jobpolicy.dev/", i), "v")
		}
		job.Annotations = pod.Annotations
	},
	"conditions": func(n int, job *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint(i)), Status: corev1.ConditionTrue})
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobConditionType(fmt.Sprint(i)), Status: corev1.ConditionTrue})
		}
	},
	"containers": func(n int, _ *batchv1.Job, pod *corev1.Pod) {
		for i := range n {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: fmt.Sprint(i), State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(i%250 + 1)}},
			})
		}
	},
	"uncounted pods": func(n int, job *batchv1.Job, _ *corev1.Pod) {
		job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
		for i := range n {
			job.Status.UncountedTerminatedPods.Failed = append(job.Status.UncountedTerminatedPods.Failed, testUID(1000+i))
		}
	},
}

// Whoever may create Jobs and pods decides how large they are. So what the executor does about them
// must cost the same for each item: the ratio that this reports is about 4 for four times as many
// items, and 16 for a cost that grows with the square.
func BenchmarkLargeObjects(b *testing.B) {
	for kind, add := range enlarge {
		b.Run(kind, func(b *testing.B) {
			fastest := func(n int) time.Duration {
				best := time.Duration(math.MaxInt64)
				for range 3 {
					best = min(best, handle(b, n, add))
				}
				return best
			}
			var ratio float64
			for b.Loop() {
				ratio = float64(fastest(80_000)) / float64(fastest(20_000))
			}
			b.ReportMetric(ratio, "ratio")
		})
	}
}

// handle returns how long the executor takes for the events of a Job and its failed pod, and for a
// request about them.
func handle(b *testing.B, n int, add func(int, *batchv1.Job, *corev1.Pod)) time.Duration {
	b.Helper()
	e, err := New(testConfig(newServer(), &script{}))
	if err != nil {
		b.Fatal(err)
	}
	job := testJob()
	job.ResourceVersion = "3"
	job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1, 2, 3}},
	}, {
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: "p", UID: testUID(77), ResourceVersion: "5", Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodFailed},
	}
	add(n, job, pod)
	runtime.GC() // Not while the time is measured.
	begun := time.Now()
	e.watcher.jobSeen(nil, job)
	e.watcher.podSeen(nil, podcache.From(pod))
	s, known := e.jobs.Find(tracker.KeyOf(job))
	if !known {
		b.Fatal("the Job is not known")
	}
	if _, err := e.decider.snapshot(s, true); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}

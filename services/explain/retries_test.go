package explain_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/services/explain"
)

// Restarts count towards backoffLimit only while the pod has not ended.
func TestRestartsOfEndedPodsAreNotTold(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	labels := map[string]string{"job-name": "restarts"}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "restarts", UID: "0be1f7a2-6d3e-4c52-9d55-4a4d3c1f0001", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(int32(2)), Completions: ptr.To(int32(2)), BackoffLimit: ptr.To(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure}},
		},
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now.Add(-time.Hour)}, Active: 1},
	}
	pod := func(name, uid string, phase corev1.PodPhase, restarts int32) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID("0be1f7a2-6d3e-4c52-9d55-4a4d3c1f00" + uid), Labels: labels,
				Finalizers:      []string{batchv1.JobTrackingFinalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			},
			Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: restarts}}},
		}
	}
	report, err := explain.Explain(explain.Facts{
		Job: job, Now: now, Pods: []corev1.Pod{pod("runs", "11", corev1.PodRunning, 2), pod("ended", "12", corev1.PodFailed, 3)},
	}, engine.DecideJob)
	if err != nil {
		t.Fatal(err)
	}
	if want := "container restarts count, too: 2 so far"; !strings.Contains(report.Retries, want) {
		t.Errorf("retries: %q, want %q", report.Retries, want)
	}
}

package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// An admission policy that refuses to let finalizers go holds a Job up, and no longer
// than it is there. The executor reads the pod after the refusal, because it may be
// gone.
func TestARefusedReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	allow := refuseReleases(t, namespace)
	job := createJob(t, namespace, "held", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	eventually(t, "the executor reads the pod that it may not release", func() (bool, string) {
		a, err := readAudit(auditLog)
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range jobPods(t, job) {
			if a.used["/pods get "+pod.Name] {
				return true, ""
			}
		}
		return false, describe(getJob(t, namespace, "held"))
	})
	if held := getJob(t, namespace, "held"); held.Status.CompletionTime != nil || held.Status.UncountedTerminatedPods == nil {
		t.Errorf("the Job has ended, or its pod is not recorded, although its pod has its finalizer: %s", describe(held))
	}
	allow()
	if done := waitFinished(t, namespace, "held"); done.Status.Succeeded != 1 || len(jobPods(t, job)) != 1 {
		t.Errorf("one pod ran: %s", describe(done))
	}
	removeFinalizer(t, namespace, "probe")
}

// refuseReleases makes the API server refuse to take the tracking finalizer from a pod
// in a namespace, until it is allowed.
func refuseReleases(t *testing.T, namespace string) (allow func()) {
	t.Helper()
	keeps := fmt.Sprintf("oldObject.metadata.?finalizers.orValue([]).all(f, f != %q || f in object.metadata.?finalizers.orValue([]))", batchv1.JobTrackingFinalizer)
	probe := probePod(t, namespace)
	return forbid(t, namespace, refusal{resource: "pods", operation: admissionv1.Update, unless: keeps}, func(ctx context.Context) error {
		_, err := client.CoreV1().Pods(namespace).Update(ctx, probe, metav1.UpdateOptions{DryRun: aDryRun})
		return err
	})
}

// probePod creates a pod of another controller with the finalizer, and returns it
// without.
func probePod(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	pod := finalizedPod("probe")
	pod.OwnerReferences = []metav1.OwnerReference{ofTraining}
	probe := objects.Create(t, client.CoreV1().Pods(namespace), pod)
	probe.Finalizers = nil
	return probe
}

package e2e

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// While a quota keeps pods from being created, those that finish are counted,
// and creation goes on as the quota allows.
func TestQuotaDelaysButLosesNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	limitPods(t, client, namespace, "one-pod", "1")
	createJob(t, namespace, "squeezed", batchv1.JobSpec{
		Completions: new(int32(10)), Parallelism: new(int32(3)), Template: shell("sleep 0.5", corev1.RestartPolicyNever),
	})
	waitJob(t, namespace, "squeezed", "a pod is counted before all were created", func(job *batchv1.Job) bool {
		return job.Status.Succeeded >= 1 && len(jobPods(t, job)) < 10
	})
	job := waitFinished(t, namespace, "squeezed")
	if pods := jobPods(t, job); len(pods) != 10 || job.Status.Succeeded != 10 || job.Status.Failed != 0 {
		t.Errorf("%d pods were made for 10 completions: %s", len(pods), describe(job))
	}
	waitEvents(t, job, "FailedCreate", "SuccessfulCreate", "Completed")
}

// limitPods sets a quota of pods, and waits until it is in force.
func limitPods(t *testing.T, client kubernetes.Interface, namespace, name, pods string) {
	t.Helper()
	quotas := client.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is in force", func() (bool, string) {
		q, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(err)
	})
}

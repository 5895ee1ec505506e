package e2e

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// While a quota keeps pods from being created, those that finish are counted,
// and creation goes on as the quota allows.
func TestQuotaDelaysButLosesNothing(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	quota, err := client.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-pod"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is in force", func() (bool, string) {
		q, err := client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), quota.Name, metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, ""
	})
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

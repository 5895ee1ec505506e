package e2e

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/objects"
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

// A Job that waits for a quota is tried again as soon as its options say, also after both services were started anew,
// and needs nothing but time when others give the quota back (kubernetes/kubernetes#114651).
func TestAQuotaIsTriedAgainAsTheOptionsSay(t *testing.T) {
	namespace := newNamespace(t)
	limitPods(t, client, namespace, "none", "0")
	createJobWith(t, namespace, "waits", "{retryDelay: {quotaMaxSeconds: 2}}", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	job := waitJob(t, namespace, "waits", "the Job begins", func(job *batchv1.Job) bool { return job.Status.StartTime != nil })
	for _, component := range []string{cluster.Engine, cluster.Executor} {
		waitEvents(t, job, "FailedCreate")
		killAndStart(t, component)
	}
	// With the usual delays, which double up to a minute, ten tries take three minutes.
	tries := func() int { return failedCreates(t, job) }
	before, since := tries(), time.Now()
	eventually(t, "the quota refuses ten more pods", func() (bool, string) { return tries() >= before+10, fmt.Sprint(tries() - before) })
	if took := time.Since(since); took > 50*time.Second {
		t.Errorf("ten more tries took %v, and two seconds lie between them", took)
	}
	objects.Delete(t, client.CoreV1().ResourceQuotas(namespace), "none", metav1.DeleteOptions{})
	if job := waitFinished(t, namespace, "waits"); job.Status.Succeeded != 1 || job.Status.Failed != 0 {
		t.Errorf("the quota is gone: %s", describe(job))
	}
}

// failedCreates is how many refused pods the events of a Job tell.
func failedCreates(t *testing.T, job *batchv1.Job) (n int) {
	t.Helper()
	events := objects.List(t, client.CoreV1().Events(job.Namespace), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(job.UID)})
	for _, e := range events.Items {
		if e.Reason == "FailedCreate" {
			n += int(max(1, e.Count))
		}
	}
	return n
}

// limitPods sets a quota of pods, and waits until it is in force.
func limitPods(t *testing.T, client kubernetes.Interface, namespace, name, pods string) {
	t.Helper()
	quotas := client.CoreV1().ResourceQuotas(namespace)
	objects.Create(t, quotas, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
	})
	eventually(t, "the quota is in force", func() (bool, string) {
		q, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, fmt.Sprint(err)
	})
}

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/proto/jobend"
	"jobpolicy.dev/test/kit/objects"
)

// withMemory is a template that asks for memory, and that no scheduler takes: the test is the node of its pods.
func withMemory(request, limit string) corev1.PodTemplateSpec {
	template := byHand()
	template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
	}
	return template
}

// endNext waits for the active pod of an index, checks what it asks for, and ends it.
func endNext(t *testing.T, job *batchv1.Job, index, request, limit string, status *corev1.PodStatus) {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "a pod of index "+index, func() (bool, string) {
		for _, p := range jobPods(t, job) {
			if p.Annotations[batchv1.JobCompletionIndexAnnotation] == index && p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil {
				pod = &p
			}
		}
		return pod != nil, describe(getJob(t, job.Namespace, job.Name))
	})
	asks := pod.Spec.Containers[0].Resources
	if asks.Requests.Memory().String() != request || asks.Limits.Memory().String() != limit || pod.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("pod %s (step %q) asks for %s, at most %s, and is %s; want %s, at most %s", pod.Name, pod.Annotations["jobpolicy.dev/resource-step"],
			asks.Requests.Memory(), asks.Limits.Memory(), pod.Status.QOSClass, request, limit)
	}
	if status == nil {
		return
	}
	status.QOSClass = pod.Status.QOSClass
	pod.Status = *status
	objects.UpdateStatus(t, client.CoreV1().Pods(job.Namespace), pod)
}

func killed(reason string) *corev1.PodStatus {
	status := killedBy(reason)
	return &status
}

// Retry with more memory after OOMKilled (argoproj/argo-workflows#12849). It survives a restart of the executor
// and a suspension; each index is raised for itself.
func TestTheNextTryHasMoreMemory(t *testing.T) {
	namespace := newNamespace(t)
	job := createJobWith(t, namespace, "render", "{endCondition: true, retryDelay: {delaysSeconds: [1]}, nextTryResources: {resource: Memory, max: 384Mi}}", batchv1.JobSpec{
		Completions: new(int32(2)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimitPerIndex: new(int32(2)), Template: withMemory("64Mi", "128Mi"),
	})
	endNext(t, job, "0", "64Mi", "128Mi", killed("OOMKilled"))
	killAndStart(t, cluster.Executor)
	endNext(t, job, "0", "128Mi", "256Mi", nil)
	patchJob(t, namespace, "render", `{"spec":{"suspend":true}}`)
	waitJob(t, namespace, "render", "suspended", func(job *batchv1.Job) bool {
		return conditionReason(job, batchv1.JobSuspended) == "JobSuspended" && job.Status.Active == 0
	})
	patchJob(t, namespace, "render", `{"spec":{"suspend":false}}`) // With it, the count of failures begins anew; the step does not.
	endNext(t, job, "0", "128Mi", "256Mi", killed("OOMKilled"))
	endNext(t, job, "1", "64Mi", "128Mi", &corev1.PodStatus{Phase: corev1.PodSucceeded})
	endNext(t, job, "0", "192Mi", "384Mi", killed("Error")) // By three, not by four: to the maximum.
	endNext(t, job, "0", "192Mi", "384Mi", killed("OOMKilled"))
	waitJob(t, namespace, "render", "an index failed", func(job *batchv1.Job) bool {
		return job.Status.FailedIndexes != nil && *job.Status.FailedIndexes == "0"
	})
	conditions := waitFinished(t, namespace, "render").Status.Conditions
	i := slices.IndexFunc(conditions, func(c batchv1.JobCondition) bool { return c.Type == jobend.ConditionType })
	if i < 0 || conditions[i].Reason != "OutOfMemory" || !strings.HasSuffix(conditions[i].Message, " reason=OOMKilled tries=3 raised=Memory:4]") {
		t.Errorf("it ended with the conditions %v", conditions)
	}
}

// A LimitRange refuses a pod with more memory: that is told as any refusal, and goes on when it may.
func TestARaisedPodThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	ranges := client.CoreV1().LimitRanges(namespace)
	objects.Create(t, ranges, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("200Mi")},
	}}}})
	job := createJobWith(t, namespace, "import", "{retryDelay: {delaysSeconds: [1]}, nextTryResources: {container: main, resource: Memory, factor: 3, max: 1Gi, onExitCodes: [42]}}",
		batchv1.JobSpec{Template: withMemory("64Mi", "128Mi")})
	status := killed("Error")
	status.ContainerStatuses[0].State.Terminated.ExitCode = 42
	endNext(t, job, "", "64Mi", "128Mi", status)
	waitEvents(t, job, "FailedCreate")
	waitExplained(t, job, "Blocked", "maximum memory usage per Container is 200Mi", "3 times the memory")
	before := len(jobPods(t, job))
	time.Sleep(2 * time.Second)
	if pods := jobPods(t, job); before != 1 || len(pods) != 1 {
		t.Errorf("%d pods, and then %d; want the failed one", before, len(pods))
	}
	objects.Delete(t, ranges, "small", metav1.DeleteOptions{})
	endNext(t, job, "", "192Mi", "384Mi", &corev1.PodStatus{Phase: corev1.PodSucceeded})
	waitFinished(t, namespace, "import")
}

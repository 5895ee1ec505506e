package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/objects"
)

var namespaces atomic.Int32

// newNamespace makes a namespace in which pods can be created, and deletes it when the
// test ends. Every test checks this way that no pod keeps a finalizer, because such a
// pod would keep the namespace.
func newNamespace(t *testing.T) string {
	t.Helper()
	return newNamespaceOn(t, client)
}

// newNamespaceOn is newNamespace for the test's own control plane.
func newNamespaceOn(t *testing.T, client *kubernetes.Clientset) string {
	t.Helper()
	name := makeNamespace(t, client)
	t.Cleanup(func() { controlplane.DeleteNamespace(t, client, name) })
	return name
}

// makeNamespace makes a namespace that goes only with its control plane.
func makeNamespace(t *testing.T, client *kubernetes.Clientset) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%d", namespaces.Add(1))
	controlplane.MakeNamespace(t, client, name)
	return name
}

var eventually = controlplane.Eventually

// shell is the pod spec of a shell script.
func shell(script string, policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	grace := int64(1)
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy:                 policy,
		TerminationGracePeriodSeconds: &grace,
		Containers:                    []corev1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", script}}},
	}}
}

// byHand is the pod spec of a Job whose pods no scheduler takes: the test is the node of its pods.
func byHand() corev1.PodTemplateSpec {
	template := shell("true", corev1.RestartPolicyNever)
	template.Spec.SchedulerName = "nobody"
	return template
}

// createJob, getJob and waitJob are about Jobs of the shared control plane, createJobOn, getJobOn and
// waitJobOn about those of any other.
func createJob(t *testing.T, namespace, name string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	return createJobOn(t, client, namespace, name, spec)
}

func createJobOn(t *testing.T, client kubernetes.Interface, namespace, name string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	return objects.Create(t, client.BatchV1().Jobs(namespace), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// createJobWith creates a Job with options of a JobPolicy.
func createJobWith(t *testing.T, namespace, name, options string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	return objects.Create(t, client.BatchV1().Jobs(namespace), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wire.Policy: "{job: " + options + "}"}}, Spec: spec,
	})
}

func getJob(t *testing.T, namespace, name string) *batchv1.Job {
	t.Helper()
	return getJobOn(t, client, namespace, name)
}

func getJobOn(t *testing.T, client kubernetes.Interface, namespace, name string) *batchv1.Job {
	t.Helper()
	return objects.Get(t, client.BatchV1().Jobs(namespace), name)
}

func patchJob(t *testing.T, namespace, name, patch string) {
	t.Helper()
	objects.Patch(t, client.BatchV1().Jobs(namespace), name, patch)
}

// jobPods lists a Job's pods by controller UID.
func jobPods(t *testing.T, job *batchv1.Job) []corev1.Pod {
	t.Helper()
	pods := objects.List(t, client.CoreV1().Pods(job.Namespace), metav1.ListOptions{})
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		return owner == nil || owner.UID != job.UID
	})
}

// waitJob waits until a Job satisfies a condition, and returns it.
func waitJob(t *testing.T, namespace, name, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	t.Helper()
	return waitJobOn(t, client, namespace, name, what, done)
}

func waitJobOn(t *testing.T, client kubernetes.Interface, namespace, name, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	t.Helper()
	var job *batchv1.Job
	eventually(t, fmt.Sprintf("Job %s: %s", name, what), func() (bool, string) {
		job = getJobOn(t, client, namespace, name)
		return done(job), describe(job)
	})
	return job
}

// waitFinished waits for the terminal condition, and checks what must be true
// of every finished Job.
func waitFinished(t *testing.T, namespace, name string) *batchv1.Job {
	t.Helper()
	job := waitJob(t, namespace, name, "finished", isFinished)
	if conditionReason(job, batchv1.JobComplete) != "" && conditionReason(job, batchv1.JobFailed) != "" {
		t.Errorf("the Job is both Complete and Failed: %s", describe(job))
	}
	for _, pod := range jobPods(t, job) {
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			t.Errorf("pod %s of the finished Job holds the finalizer", pod.Name)
		}
	}
	uncounted := job.Status.UncountedTerminatedPods
	if uncounted != nil && len(uncounted.Succeeded)+len(uncounted.Failed) > 0 {
		t.Errorf("the finished Job has uncounted pods: %v", uncounted)
	}
	return job
}

func isComplete(job *batchv1.Job) bool { return conditionReason(job, batchv1.JobComplete) != "" }

func isFinished(job *batchv1.Job) bool {
	return isComplete(job) || conditionReason(job, batchv1.JobFailed) != ""
}

// conditionReason returns the reason of a condition that is true; a condition
// without a reason reads "(none)".
func conditionReason(job *batchv1.Job, conditionType batchv1.JobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == conditionType && c.Status == corev1.ConditionTrue {
			if c.Reason == "" {
				return "(none)"
			}
			return c.Reason
		}
	}
	return ""
}

// describe is a status in one line.
func describe(job *batchv1.Job) string {
	var conditions []string
	for _, c := range job.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s(%s)", c.Type, c.Status, c.Reason))
	}
	s := job.Status
	return fmt.Sprintf("active=%d succeeded=%d failed=%d completedIndexes=%q uncounted=%v conditions=[%s]",
		s.Active, s.Succeeded, s.Failed, s.CompletedIndexes, s.UncountedTerminatedPods, strings.Join(conditions, " "))
}

// eventReasons returns the reasons of the events on a Job.
func eventReasons(t *testing.T, job *batchv1.Job) []string {
	t.Helper()
	events := objects.List(t, client.CoreV1().Events(job.Namespace), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(job.UID)})
	var reasons []string
	for _, e := range events.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func waitEvents(t *testing.T, job *batchv1.Job, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("events %v", want), func() (bool, string) {
		have := eventReasons(t, job)
		for _, reason := range want {
			if !slices.Contains(have, reason) {
				return false, fmt.Sprint(have)
			}
		}
		return true, ""
	})
}

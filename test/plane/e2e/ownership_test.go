package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// I9: what belongs to another controller is not touched.
func TestForeignJobsAndPodsAreLeftAlone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	foreign := createJob(t, namespace, "foreign", batchv1.JobSpec{
		ManagedBy: new("example.com/other"), Template: shell("true", corev1.RestartPolicyNever),
	})
	pod := finalizedPod("of-another-kind")
	pod.OwnerReferences = []metav1.OwnerReference{ofTraining}
	ofForeign := finalizedPod("of-a-foreign-job")
	ofForeign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(foreign, batchv1.SchemeGroupVersion.WithKind("Job"))}
	for _, p := range []*corev1.Pod{pod, ofForeign} {
		objects.Create(t, client.CoreV1().Pods(namespace), p)
	}
	// A Job of ours that is created later and ends shows that the executor had
	// time to see the others.
	createJob(t, namespace, "ours", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	waitFinished(t, namespace, "ours")
	time.Sleep(time.Second)
	if job := getJob(t, namespace, "foreign"); job.Status.StartTime != nil || job.Status.Active != 0 || len(job.Status.Conditions) > 0 {
		t.Errorf("the foreign Job's status was written: %s", describe(job))
	}
	if n := len(jobPods(t, foreign)); n != 1 {
		t.Errorf("the foreign Job has %d pods, want its own 1", n)
	}
	for _, name := range []string{"of-a-foreign-job", "of-another-kind"} {
		if !hasFinalizer(t, namespace, name) {
			t.Errorf("pod %s lost its finalizer", name)
		}
		removeFinalizer(t, namespace, name)
	}
}

// ofTraining makes an object of another controller one that a custom resource controls.
var ofTraining = metav1.OwnerReference{
	APIVersion: "example.com/v1", Kind: "Training", Name: "t", UID: "00000000-0000-4000-8000-000000000001", Controller: new(true),
}

// finalizedPod is a pod with the tracking finalizer that is never scheduled.
func finalizedPod(name string) *corev1.Pod {
	spec := shell("sleep 600", corev1.RestartPolicyNever).Spec
	spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{batchv1.JobTrackingFinalizer}}, Spec: spec}
}

func hasFinalizer(t *testing.T, namespace, name string) bool {
	t.Helper()
	pod := objects.Get(t, client.CoreV1().Pods(namespace), name)
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

func removeFinalizer(t *testing.T, namespace, name string) {
	t.Helper()
	pod := objects.Get(t, client.CoreV1().Pods(namespace), name)
	pod.Finalizers = nil
	objects.Update(t, client.CoreV1().Pods(namespace), pod)
}

// A pod with the finalizer and no owner is an orphan; nobody else would release it.
func TestOrphanIsReleased(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	pod := finalizedPod("orphan")
	objects.Create(t, client.CoreV1().Pods(namespace), pod)
	eventually(t, "the orphan's finalizer is gone", func() (bool, string) { return !hasFinalizer(t, namespace, "orphan"), "" })
}

func TestAdoptionAndRelease(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	labels := map[string]string{"app": "adopted"}
	template := shell("sleep 600", corev1.RestartPolicyNever)
	stray := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stray", Labels: labels}, Spec: template.Spec}
	objects.Create(t, client.CoreV1().Pods(namespace), stray)
	// Pods and Jobs reach the executor by different watches: it must know the pod before the Job.
	eventually(t, "the stray pod runs", func() (bool, string) {
		pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), "stray", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, fmt.Sprint(err)
	})
	template.Labels = labels
	job := createJob(t, namespace, "adopter", batchv1.JobSpec{
		ManualSelector: new(true), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Parallelism: new(int32(2)), Completions: new(int32(2)), Template: template,
	})
	waitJob(t, namespace, "adopter", "two pods", func(job *batchv1.Job) bool { return job.Status.Active == 2 })
	names := []string{}
	for _, pod := range jobPods(t, job) {
		names = append(names, pod.Name)
	}
	if len(names) != 2 || !slices.Contains(names, "stray") || !hasFinalizer(t, namespace, "stray") {
		t.Fatalf("the Job has pods %v; want the stray one, with the finalizer, and one more", names)
	}
	pod := objects.Get(t, client.CoreV1().Pods(namespace), "stray")
	pod.Labels = map[string]string{"app": "free"}
	objects.Update(t, client.CoreV1().Pods(namespace), pod)
	eventually(t, "the pod is let go and replaced", func() (bool, string) {
		pod, err := client.CoreV1().Pods(namespace).Get(t.Context(), "stray", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		free := metav1.GetControllerOf(pod) == nil && !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
		return free && len(jobPods(t, job)) == 2, describe(getJob(t, namespace, "adopter"))
	})
}

// B9, I8: a Job deleted and created again under its name starts at once.
func TestSameNameAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	spec := batchv1.JobSpec{Parallelism: new(int32(3)), Template: shell("sleep 600", corev1.RestartPolicyNever)}
	for range 3 {
		job := createJob(t, namespace, "again", spec)
		waitJob(t, namespace, "again", "active", func(now *batchv1.Job) bool { return now.UID == job.UID && now.Status.Active == 3 })
		objects.Delete(t, client.BatchV1().Jobs(namespace), "again", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	}
}

// Whatever way a Job is deleted in, its pods lose the finalizer (B3, B6).
func TestDeletionReleasesPods(t *testing.T) {
	t.Parallel()
	for _, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(propagation), func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			job := createJob(t, namespace, "deleted", batchv1.JobSpec{
				Parallelism: new(int32(3)), Completions: new(int32(9)), Template: shell("sleep 1", corev1.RestartPolicyNever),
			})
			waitJob(t, namespace, "deleted", "some pods are done", func(job *batchv1.Job) bool { return job.Status.Succeeded >= 1 })
			objects.Delete(t, client.BatchV1().Jobs(namespace), "deleted", metav1.DeleteOptions{PropagationPolicy: &propagation})
			eventually(t, "the Job is gone", func() (bool, string) {
				_, err := client.BatchV1().Jobs(namespace).Get(t.Context(), "deleted", metav1.GetOptions{})
				return apierrors.IsNotFound(err), ""
			})
			checkPodsAfterDeletion(t, job, propagation)
		})
	}
}

func checkPodsAfterDeletion(t *testing.T, job *batchv1.Job, propagation metav1.DeletionPropagation) {
	t.Helper()
	eventually(t, "the pods are as the deletion has it", func() (bool, string) {
		pods, err := client.CoreV1().Pods(job.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, pod := range pods.Items {
			if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
				return false, pod.Name + " holds the finalizer"
			}
		}
		if propagation == metav1.DeletePropagationOrphan {
			return len(pods.Items) > 0, "no pods were left as orphans"
		}
		return len(pods.Items) == 0, "pods are left"
	})
}

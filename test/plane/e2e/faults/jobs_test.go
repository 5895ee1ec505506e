package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/kit/objects"
)

// spec returns the spec of a Job that is to complete n times, p pods at a time.
func spec(n, p int32) batchv1.JobSpec {
	return batchv1.JobSpec{Completions: &n, Parallelism: &p, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "none"}},
	}}}
}

func indexed(n, p int32) batchv1.JobSpec {
	s := spec(n, p)
	s.CompletionMode = new(batchv1.IndexedCompletion)
	return s
}

func withLimit(s batchv1.JobSpec, n int32) batchv1.JobSpec {
	s.BackoffLimit = &n
	return s
}

func withPerIndex(s batchv1.JobSpec, n int32) batchv1.JobSpec {
	s.BackoffLimitPerIndex = &n
	return s
}

func (l *lab) create(name string, spec batchv1.JobSpec) *batchv1.Job {
	l.Helper()
	return objects.Create(l, client.BatchV1().Jobs(l.namespace), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

func (l *lab) job(name string) *batchv1.Job {
	l.Helper()
	return objects.Get(l, client.BatchV1().Jobs(l.namespace), name)
}

func (l *lab) patch(name, patch string) {
	l.Helper()
	objects.Patch(l, client.BatchV1().Jobs(l.namespace), name, patch)
}

func (l *lab) delete(name string, propagation metav1.DeletionPropagation) {
	l.Helper()
	objects.Delete(l, client.BatchV1().Jobs(l.namespace), name, metav1.DeleteOptions{PropagationPolicy: &propagation})
}

// gone waits until a Job does not exist any more.
func (l *lab) gone(job *batchv1.Job) {
	l.Helper()
	l.eventually("the Job is gone", func() (bool, string) {
		have, err := client.BatchV1().Jobs(l.namespace).Get(l.Context(), job.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && have.UID != job.UID) {
			return true, ""
		}
		return false, fmt.Sprintf("finalizers %v, %v", have.Finalizers, err)
	})
}

// wait waits until a Job satisfies a condition, and returns it.
func (l *lab) wait(name, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	l.Helper()
	var job *batchv1.Job
	l.eventually("Job "+name+": "+what, func() (bool, string) {
		job = l.job(name)
		return done(job), describe(job)
	})
	return job
}

func (l *lab) finished(name string) *batchv1.Job {
	l.Helper()
	return l.wait(name, "finished", isFinished)
}

// ends waits until a Job is finished, and compares how.
func (l *lab) ends(name string, condition batchv1.JobConditionType, succeeded, failed int32) {
	l.Helper()
	job := l.finished(name)
	if !isTrue(job, condition) || job.Status.Succeeded != succeeded || job.Status.Failed != failed {
		l.Errorf("Job %s: want %s with %d succeeded and %d failed; it has %s", name, condition, succeeded, failed, describe(job))
	}
}

// pods lists a Job's pods.
func (l *lab) pods(job *batchv1.Job) []corev1.Pod {
	l.Helper()
	pods := objects.List(l, client.CoreV1().Pods(l.namespace), metav1.ListOptions{})
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !ownedBy(&pod, job.UID) })
}

// active waits until the Job has n pods that have not ended, and returns them.
func (l *lab) active(job *batchv1.Job, n int) []corev1.Pod {
	l.Helper()
	var pods []corev1.Pod
	l.eventually(fmt.Sprintf("Job %s: %d active pods", job.Name, n), func() (bool, string) {
		pods = slices.DeleteFunc(l.pods(job), func(pod corev1.Pod) bool { return ended(&pod) || pod.DeletionTimestamp != nil })
		return len(pods) == n, fmt.Sprintf("%d pods", len(pods))
	})
	return pods
}

// noneHeld waits until no pod of the namespace holds the finalizer.
func (l *lab) noneHeld() {
	l.Helper()
	l.eventually("no pod holds the finalizer", func() (bool, string) {
		pods, err := client.CoreV1().Pods(l.namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var names []string
		for _, pod := range pods.Items {
			if held(&pod) {
				names = append(names, pod.Name)
			}
		}
		return len(names) == 0, fmt.Sprint(names)
	})
}

var (
	held, ended, ownedBy         = ledger.Held, ledger.Ended, ledger.OwnedBy
	isTrue, isFinished, describe = ledger.IsTrue, ledger.IsFinished, ledger.Describe
)

func ready(job *batchv1.Job) int32 { return ptr.Deref(job.Status.Ready, 0) }

// byIndex are the pods of an Indexed Job by their index.
func byIndex(pods []corev1.Pod) map[string]corev1.Pod {
	indexes := map[string]corev1.Pod{}
	for _, pod := range pods {
		indexes[pod.Annotations[batchv1.JobCompletionIndexAnnotation]] = pod
	}
	return indexes
}

func describePods(pods []corev1.Pod) string {
	var lines []string
	for _, pod := range pods {
		lines = append(lines, fmt.Sprintf("%s %s finalizers %v, deleted %v", pod.Name, pod.Status.Phase, pod.Finalizers, pod.DeletionTimestamp != nil))
	}
	return strings.Join(lines, "; ")
}

package world

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/simulated/jobspec"
)

// heldByStranger is a finalizer that keeps what a stranger has made: the garbage collector deletes
// it, because its owner does not exist.
const heldByStranger = "example.com/stranger"

// forgePod creates a pod elsewhere that looks like one of a Job.
func (w *world) forgePod(s *step) error {
	c, key := w.actor(s.who), s.key()
	job, err := c.BatchV1().Jobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pods := c.CoreV1().Pods(elsewhere)
	pod, err := pods.Create(background, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "forged-", Labels: job.Spec.Template.Labels, Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: "0"},
			Finalizers:      []string{batchv1.JobTrackingFinalizer, heldByStranger},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: jobspec.New().Template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w.later(s.d, func() {
		if live, err := pods.Get(background, pod.Name, metav1.GetOptions{}); err == nil {
			live.Finalizers = nil // Beside the built-in controller, nobody else may release it.
			_, _ = pods.Update(background, live, metav1.UpdateOptions{})
		}
	})
	return nil
}

// forgeRun creates a Job elsewhere that looks like a run of a CronJob which is due now.
func (w *world) forgeRun(s *step) error {
	c, key := w.actor(s.who).BatchV1(), s.key()
	cron, err := c.CronJobs(key.Namespace).Get(background, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	jobs := c.Jobs(elsewhere)
	spec := *cron.Spec.JobTemplate.Spec.DeepCopy()
	spec.Suspend = new(true)
	job, err := jobs.Create(background, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "forged-", Finalizers: []string{heldByStranger},
			Annotations:     map[string]string{batchv1.CronJobScheduledTimestampAnnotation: time.Now().UTC().Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w.later(s.d, func() {
		if live, err := jobs.Get(background, job.Name, metav1.GetOptions{}); err == nil {
			live.Finalizers = without(live.Finalizers, heldByStranger)
			_, _ = jobs.Update(background, live, metav1.UpdateOptions{})
		}
	})
	return nil
}

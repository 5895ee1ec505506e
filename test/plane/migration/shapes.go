package migration

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wants is the annotation that says how a Job of a load has to end.
const wants = "load/wants"

// shapes are the Jobs of a load. Each runs for seconds, so that whatever happens
// to its controllers happens in the middle of it, and ends without stopping a
// pod, so that every pod counts.
var shapes = []func(image string) *batchv1.Job{
	func(image string) *batchv1.Job { return shaped(image, "sleep 2", batchv1.JobComplete, 4, 2) },
	func(image string) *batchv1.Job {
		job := shaped(image, "sleep 1", batchv1.JobComplete, 5, 3)
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		return job
	},
	// The odd indexes fail, each for itself.
	func(image string) *batchv1.Job {
		job := shaped(image, "sleep 1; exit $((JOB_COMPLETION_INDEX % 2))", batchv1.JobFailed, 4, 2)
		job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		job.Spec.BackoffLimitPerIndex = new(int32(0))
		job.Spec.BackoffLimit = nil
		return job
	},
	// Two tries.
	func(image string) *batchv1.Job {
		job := shaped(image, "sleep 1; exit 3", batchv1.JobFailed, 1, 1)
		job.Spec.BackoffLimit = new(int32(1))
		return job
	},
}

func shaped(image, script string, end batchv1.JobConditionType, completions, parallelism int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wants: string(end)}},
		Spec: batchv1.JobSpec{
			Completions:  &completions,
			Parallelism:  &parallelism,
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: new(int64(1)),
				Containers: []corev1.Container{{
					Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
				}},
			}},
		},
	}
}

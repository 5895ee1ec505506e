package plugin

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// probeEvery is how often a probe looks at its Job.
const probeEvery = 200 * time.Millisecond

// deleteTimeout bounds the deletion of a probe's Job.
const deleteTimeout = 10 * time.Second

// ProbeJobs finds out which controller is the first to act on a Job that names no manager.
// It creates a suspended Job, waits until a controller writes its status, and deletes the
// Job. It returns the field managers of the status, or none if nobody wrote it within the
// timeout. Another controller that acts, too, is seldom among them: it has nothing to write.
func (r *clusterReader) ProbeJobs(ctx context.Context, timeout time.Duration) (writers []string, err error) {
	probe := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "jobpolicy-probe-"},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "never-runs", Image: "none"}},
			}},
		},
	}
	job := &batchv1.Job{}
	if err := r.batch.Post().Namespace(r.Namespace).Resource("jobs").Body(probe).Do(ctx).Into(job); err != nil {
		return nil, fmt.Errorf("create a suspended job in namespace %s: %w", r.Namespace, err)
	}
	defer func() {
		if deleted := r.deleteJob(ctx, job); err == nil {
			err = deleted
		}
	}()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
		now, err := r.Job(ctx, job.Name)
		if err != nil {
			return nil, err
		}
		if writers := statusWriters(now); len(writers) > 0 {
			return writers, nil
		}
	}
	return nil, nil
}

func statusWriters(job *batchv1.Job) []string {
	var writers []string
	for _, entry := range job.ManagedFields {
		if entry.Subresource == "status" {
			writers = append(writers, entry.Manager)
		}
	}
	return writers
}

// deleteJob deletes a Job, also when ctx is done.
func (r *clusterReader) deleteJob(ctx context.Context, job *batchv1.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	opts := &metav1.DeleteOptions{
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(string(job.UID)),
	}
	if err := r.batch.Delete().Namespace(job.Namespace).Resource("jobs").Name(job.Name).Body(opts).Do(ctx).Error(); err != nil {
		return fmt.Errorf("delete job %s in namespace %s: %w", job.Name, job.Namespace, err)
	}
	return nil
}

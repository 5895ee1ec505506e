package ttl

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ask asks the engine what becomes of a finished Job. The request has no pods: they
// are the business of the controller that manages the Job.
func (c *Controller) ask(ctx context.Context, job *batchv1.Job) (*jobpolicyv1.DecideJobResponse, error) {
	req, err := c.request(job)
	if err != nil {
		return nil, err
	}
	d, err := controller.Ask(ctx, c.base, c.cfg.Decider.DecideJob, req)
	if err != nil {
		return nil, err
	}
	c.base.RecordEvents(job, d.GetEvents())
	if d.GetDeleteJob() == nil {
		controller.Applied(ctx, nil) // There is nothing to do.
	}
	return d, nil
}

func (c *Controller) request(job *batchv1.Job) (*jobpolicyv1.DecideJobRequest, error) {
	uid, err := wire.UIDBytes(job.UID)
	if err != nil {
		return nil, fmt.Errorf("uid: %w", err)
	}
	spec, err := wire.JobSpec(job)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	status, err := wire.JobStatus(&job.Status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return &jobpolicyv1.DecideJobRequest{
		RequestId: string(job.UID) + "-ttl-" + job.ResourceVersion,
		Now:       timestamppb.New(c.now()),
		Job:       &jobpolicyv1.JobRef{Uid: uid, Namespace: job.Namespace, Name: job.Name, Generation: job.Generation},
		Spec:      spec,
		Status:    status,

		NamespaceAnnotations: c.namespaceAnnotations(job),
	}, nil
}

// namespaceAnnotations are those of the Job's namespace that the engine may read.
func (c *Controller) namespaceAnnotations(job *batchv1.Job) map[string]string {
	if c.namespaces == nil {
		return nil
	}
	obj, ok, err := c.namespaces.GetStore().GetByKey(job.Namespace)
	if err != nil || !ok {
		return nil
	}
	return wire.Annotations(obj.(*corev1.Namespace).Annotations)
}

package ttl

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ask asks the engine what becomes of a finished Job. The request has no pods: they
// are the business of the controller that manages the Job. If the Job is to be deleted, ask does
// not record the events of the decision: the caller does.
func (c *Controller) ask(ctx context.Context, job *batchv1.Job) (*jobpolicyv1.DecideJobResponse, error) {
	req, err := c.request(job)
	if err != nil {
		return nil, err
	}
	d, err := controller.Ask(ctx, c.base, c.base.Decider.DecideJob, req)
	if err != nil {
		return nil, err
	}
	if d.GetDeleteJob() == nil {
		c.base.RecordEvents(job, d.GetEvents())
		controller.RecordOutcome(ctx, nil) // There is nothing to do.
	}
	return d, nil
}

func (c *Controller) request(job *batchv1.Job) (*jobpolicyv1.DecideJobRequest, error) {
	req, err := wire.JobRequest(job)
	if err != nil {
		return nil, err
	}
	req.RequestId = string(job.UID) + "-ttl-" + job.ResourceVersion
	req.Now = timestamppb.New(c.now())
	req.Spec.Options, req.Spec.OptionProblems = c.cfg.Policies.OfJob(job)
	return req, nil
}

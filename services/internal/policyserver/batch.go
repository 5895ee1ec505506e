package policyserver

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/refusal"
)

// DecideJobs implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideJobs(ctx context.Context, req *jobpolicyv1.DecideJobsRequest) (*jobpolicyv1.DecideJobsResponse, error) {
	results, err := inParallel(ctx, req.GetRequests(), func(r *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobsResult {
		decision, err := s.judge.DecideJob(ctx, r)
		if err != nil {
			return &jobpolicyv1.DecideJobsResult{Result: &jobpolicyv1.DecideJobsResult_Error{Error: status.Convert(err).Proto()}}
		}
		return &jobpolicyv1.DecideJobsResult{Result: &jobpolicyv1.DecideJobsResult_Decision{Decision: decision}}
	})
	if err != nil {
		return nil, err
	}
	return &jobpolicyv1.DecideJobsResponse{Results: results}, nil
}

// DecideCronJobs implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideCronJobs(ctx context.Context, req *jobpolicyv1.DecideCronJobsRequest) (*jobpolicyv1.DecideCronJobsResponse, error) {
	results, err := inParallel(ctx, req.GetRequests(), func(r *jobpolicyv1.DecideCronJobRequest) *jobpolicyv1.DecideCronJobsResult {
		decision, err := s.judge.DecideCronJob(ctx, r)
		if err != nil {
			return &jobpolicyv1.DecideCronJobsResult{Result: &jobpolicyv1.DecideCronJobsResult_Error{Error: status.Convert(err).Proto()}}
		}
		return &jobpolicyv1.DecideCronJobsResult{Result: &jobpolicyv1.DecideCronJobsResult_Decision{Decision: decision}}
	})
	if err != nil {
		return nil, err
	}
	return &jobpolicyv1.DecideCronJobsResponse{Results: results}, nil
}

// CheckJobStatuses implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) CheckJobStatuses(ctx context.Context, req *jobpolicyv1.CheckJobStatusesRequest) (*jobpolicyv1.CheckJobStatusesResponse, error) {
	results, err := inParallel(ctx, req.GetRequests(), func(r *jobpolicyv1.CheckJobStatusRequest) *jobpolicyv1.CheckJobStatusesResult {
		resp, err := s.CheckJobStatus(ctx, r)
		if err != nil {
			return &jobpolicyv1.CheckJobStatusesResult{Result: &jobpolicyv1.CheckJobStatusesResult_Error{Error: status.Convert(err).Proto()}}
		}
		return &jobpolicyv1.CheckJobStatusesResult{Result: &jobpolicyv1.CheckJobStatusesResult_Response{Response: resp}}
	})
	if err != nil {
		return nil, err
	}
	return &jobpolicyv1.CheckJobStatusesResponse{Results: results}, nil
}

// inParallel answers the requests of a batch, as many at a time as there are
// processors; results keep the order.
func inParallel[Req, Result any](ctx context.Context, requests []Req, answer func(Req) Result) ([]Result, error) {
	if len(requests) > maxBatch {
		return nil, refusal.InvalidArgument(engine.FieldViolation{
			Field:       "requests",
			Description: fmt.Sprintf("must have at most %d items, has %d", maxBatch, len(requests)),
		})
	}
	results := make([]Result, len(requests))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range requests {
		group.Go(func() error {
			results[i] = answer(r)
			return nil
		})
	}
	_ = group.Wait() // no item returns an error
	// A caller that is gone, or whose time is up, gets no half-done batch.
	if err := refusal.FromContextOf(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

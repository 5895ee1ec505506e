// Package policyserver serves jobpolicy.v1.PolicyService over gRPC, with health,
// reflection and limits beside it. It holds no policy and no state.
package policyserver

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/judge"
	"jobpolicy.dev/services/internal/refusal"
)

// Limits of the contract.
const (
	// MaxMessageBytes is the size of the largest message, either way.
	MaxMessageBytes = 16 << 20
	maxBatch        = 1000
)

// contractVersion is the only contract served.
const contractVersion = "jobpolicy.v1"

// service implements the RPCs.
type service struct {
	jobpolicyv1grpc.UnimplementedPolicyServiceServer
	judge   *judge.Judge
	version string
}

// DecideJob implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return s.judge.DecideJob(ctx, req)
}

// DecideCronJob implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return s.judge.DecideCronJob(ctx, req)
}

// DecideJobs implements jobpolicyv1grpc.PolicyServiceServer. Items are decided on
// in parallel, as many at a time as there are processors; results keep the order.
func (s *service) DecideJobs(ctx context.Context, req *jobpolicyv1.DecideJobsRequest) (*jobpolicyv1.DecideJobsResponse, error) {
	requests := req.GetRequests()
	if len(requests) > maxBatch {
		return nil, refusal.InvalidArgument(engine.FieldViolation{
			Field:       "requests",
			Description: fmt.Sprintf("must have at most %d items, has %d", maxBatch, len(requests)),
		})
	}
	results := make([]*jobpolicyv1.DecideJobsResult, len(requests))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, r := range requests {
		group.Go(func() error {
			results[i] = s.result(ctx, r)
			return nil
		})
	}
	_ = group.Wait() // no item returns an error
	// A caller that is gone, or whose time is up, gets no half-done batch.
	if err := ctx.Err(); err != nil {
		return nil, refusal.FromContext(err)
	}
	return &jobpolicyv1.DecideJobsResponse{Results: results}, nil
}

func (s *service) result(ctx context.Context, req *jobpolicyv1.DecideJobRequest) *jobpolicyv1.DecideJobsResult {
	decision, err := s.judge.DecideJob(ctx, req)
	if err != nil {
		return &jobpolicyv1.DecideJobsResult{Result: &jobpolicyv1.DecideJobsResult_Error{Error: status.Convert(err).Proto()}}
	}
	return &jobpolicyv1.DecideJobsResult{Result: &jobpolicyv1.DecideJobsResult_Decision{Decision: decision}}
}

// CheckJobStatus implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) CheckJobStatus(ctx context.Context, req *jobpolicyv1.CheckJobStatusRequest) (*jobpolicyv1.CheckJobStatusResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, refusal.FromContext(err)
	}
	resp, err := engine.CheckJobStatus(req)
	if err != nil {
		return nil, refusal.FromEngine(err)
	}
	return resp, nil
}

// GetServerInfo implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) GetServerInfo(context.Context, *jobpolicyv1.GetServerInfoRequest) (*jobpolicyv1.GetServerInfoResponse, error) {
	return &jobpolicyv1.GetServerInfoResponse{
		Version:          s.version,
		ContractVersions: []string{contractVersion},
		Capabilities:     engine.Capabilities(),
		MaxRequestBytes:  MaxMessageBytes,
	}, nil
}

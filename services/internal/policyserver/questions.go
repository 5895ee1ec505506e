package policyserver

import (
	"context"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/decider"
)

// CheckJobStatus implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) CheckJobStatus(ctx context.Context, req *jobpolicyv1.CheckJobStatusRequest) (*jobpolicyv1.CheckJobStatusResponse, error) {
	return decider.Answer(ctx, s.engine, engine.CheckJobStatus, req)
}

// MatchPodFailurePolicy implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) MatchPodFailurePolicy(ctx context.Context, req *jobpolicyv1.MatchPodFailurePolicyRequest) (*jobpolicyv1.MatchPodFailurePolicyResponse, error) {
	return decider.Answer(ctx, s.engine, engine.MatchPodFailurePolicy, req)
}

// MatchSuccessPolicy implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) MatchSuccessPolicy(ctx context.Context, req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	return decider.Answer(ctx, s.engine, engine.MatchSuccessPolicy, req)
}

// ComputePodBackoff implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ComputePodBackoff(ctx context.Context, req *jobpolicyv1.ComputePodBackoffRequest) (*jobpolicyv1.ComputePodBackoffResponse, error) {
	return decider.Answer(ctx, s.engine, engine.ComputePodBackoff, req)
}

// ChoosePodsToDelete implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ChoosePodsToDelete(ctx context.Context, req *jobpolicyv1.ChoosePodsToDeleteRequest) (*jobpolicyv1.ChoosePodsToDeleteResponse, error) {
	return decider.Answer(ctx, s.engine, engine.ChoosePodsToDelete, req)
}

// ComputeIndexes implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ComputeIndexes(ctx context.Context, req *jobpolicyv1.ComputeIndexesRequest) (*jobpolicyv1.ComputeIndexesResponse, error) {
	return decider.Answer(ctx, s.engine, engine.ComputeIndexes, req)
}

// ComputeDeadlines implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ComputeDeadlines(ctx context.Context, req *jobpolicyv1.ComputeDeadlinesRequest) (*jobpolicyv1.ComputeDeadlinesResponse, error) {
	return decider.Answer(ctx, s.engine, engine.ComputeDeadlines, req)
}

// ListScheduledRuns implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ListScheduledRuns(ctx context.Context, req *jobpolicyv1.ListScheduledRunsRequest) (*jobpolicyv1.ListScheduledRunsResponse, error) {
	return decider.Answer(ctx, s.engine, cronjob.ListScheduledRuns, req)
}

package policyserver

import (
	"context"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/judge"
)

// CheckJobStatus implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) CheckJobStatus(ctx context.Context, req *jobpolicyv1.CheckJobStatusRequest) (*jobpolicyv1.CheckJobStatusResponse, error) {
	return judge.Answer(ctx, s.judge, engine.CheckJobStatus, req)
}

// MatchPodFailurePolicy implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) MatchPodFailurePolicy(ctx context.Context, req *jobpolicyv1.MatchPodFailurePolicyRequest) (*jobpolicyv1.MatchPodFailurePolicyResponse, error) {
	return judge.Answer(ctx, s.judge, engine.MatchPodFailurePolicy, req)
}

// MatchSuccessPolicy implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) MatchSuccessPolicy(ctx context.Context, req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	return judge.Answer(ctx, s.judge, engine.MatchSuccessPolicy, req)
}

// ComputePodBackoff implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) ComputePodBackoff(ctx context.Context, req *jobpolicyv1.ComputePodBackoffRequest) (*jobpolicyv1.ComputePodBackoffResponse, error) {
	return judge.Answer(ctx, s.judge, engine.ComputePodBackoff, req)
}

// Package policyserver serves jobpolicy.v1.PolicyService over gRPC, with health,
// reflection and limits beside it. It holds no policy and no state.
//
// Weighed against go-grpc-middleware v2 and grpc/authz: their interceptors run when a
// request was received and decoded whole, and then it has cost what is to be bounded.
package policyserver

import (
	"context"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/decider"
)

// contractVersion is the only contract served.
const contractVersion = "jobpolicy.v1"

// service implements the RPCs.
type service struct {
	jobpolicyv1grpc.UnimplementedPolicyServiceServer
	engine *decider.Embedded
	build  jobpolicyv1grpc.Build
}

// DecideJob implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideJob(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return s.engine.DecideJob(ctx, req)
}

// DecideCronJob implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) DecideCronJob(ctx context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return s.engine.DecideCronJob(ctx, req)
}

// GetServerInfo implements jobpolicyv1grpc.PolicyServiceServer.
func (s *service) GetServerInfo(context.Context, *jobpolicyv1.GetServerInfoRequest) (*jobpolicyv1.GetServerInfoResponse, error) {
	return &jobpolicyv1.GetServerInfoResponse{
		Version:          s.build.Version,
		ContractVersions: []string{contractVersion},
		Capabilities:     engine.Capabilities(),
		MaxRequestBytes:  jobpolicyv1grpc.MaxMessageBytes,
		RulesDigest:      s.build.RulesDigest,
	}, nil
}

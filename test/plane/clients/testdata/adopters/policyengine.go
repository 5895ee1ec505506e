package controllers

import (
	"context"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	ctrl "sigs.k8s.io/controller-runtime"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// The environment says where the engine is: JOBPOLICY_ENGINE is a gRPC target such as
// dns:///jobpolicy-engine.jobpolicy-system.svc:8443, JOBPOLICY_CERTIFICATES a folder with ca.crt,
// tls.crt and tls.key.
const (
	engineVariable       = "JOBPOLICY_ENGINE"
	certificatesVariable = "JOBPOLICY_CERTIFICATES"
)

// callTimeout bounds a call. An answer takes a millisecond.
const callTimeout = time.Second

// policyEngine connects at its first call.
var policyEngine = sync.OnceValues(func() (jobpolicyv1grpc.PolicyServiceClient, error) {
	conn, err := jobpolicyv1grpc.Dial(os.Getenv(engineVariable), os.Getenv(certificatesVariable), grpc.WithUnaryInterceptor(bounded))
	if err != nil {
		return nil, err
	}
	return jobpolicyv1grpc.NewPolicyServiceClient(conn), nil
})

// bounded ends a call after callTimeout, and logs how long an answer took. While the engine is away, a
// call fails at once: JobSet has one worker, which has other JobSets to look after.
func bounded(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begin := time.Now()
	err := call(ctx, method, req, reply, conn, append(opts, grpc.WaitForReady(false))...)
	if err == nil {
		ctrl.LoggerFrom(ctx).V(4).Info("asked the policy engine", "method", method, "microseconds", time.Since(begin).Microseconds())
	}
	return err
}

// later returns when to ask again after an error that waiting may heal, and otherwise the error. An
// error would be repeated with delays that grow to minutes.
func later(ctx context.Context, err error) (time.Duration, error) {
	delay, again := jobpolicyv1grpc.RetryDelay(err)
	if !again {
		return 0, err
	}
	ctrl.LoggerFrom(ctx).Error(err, "the policy engine has not answered", "askedAgainAfter", delay)
	return delay, nil
}

// computeDeadlines asks ComputeDeadlines.
func computeDeadlines(ctx context.Context, req *jobpolicyv1.ComputeDeadlinesRequest) (*jobpolicyv1.ComputeDeadlinesResponse, error) {
	engine, err := policyEngine()
	if err != nil {
		return nil, err
	}
	return engine.ComputeDeadlines(ctx, req)
}

// matchSuccessPolicy asks MatchSuccessPolicy.
func matchSuccessPolicy(ctx context.Context, req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	engine, err := policyEngine()
	if err != nil {
		return nil, err
	}
	return engine.MatchSuccessPolicy(ctx, req)
}

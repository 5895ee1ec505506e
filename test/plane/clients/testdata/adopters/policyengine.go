// Package policyengine asks jobpolicy's engine, for a controller of whatever kind.
//
// The environment says where the engine is: JOBPOLICY_ENGINE is a gRPC target such as
// dns:///jobpolicy-engine.jobpolicy-system.svc:8443, JOBPOLICY_CERTIFICATES a folder with ca.crt,
// tls.crt and tls.key.
package policyengine

import (
	"context"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	ctrl "sigs.k8s.io/controller-runtime"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

const (
	engineVariable       = "JOBPOLICY_ENGINE"
	certificatesVariable = "JOBPOLICY_CERTIFICATES"
)

// callTimeout bounds a call. An answer takes a millisecond.
const callTimeout = time.Second

// connect connects at the first question.
var connect = sync.OnceValues(func() (jobpolicyv1grpc.PolicyServiceClient, error) {
	conn, err := jobpolicyv1grpc.Dial(os.Getenv(engineVariable), os.Getenv(certificatesVariable), grpc.WithUnaryInterceptor(bounded))
	if err != nil {
		return nil, err
	}
	return jobpolicyv1grpc.NewPolicyServiceClient(conn), nil
})

// Ask asks one question, for example that of jobpolicyv1grpc.PolicyServiceClient.ComputeDeadlines.
func Ask[Request, Response any](
	ctx context.Context,
	question func(jobpolicyv1grpc.PolicyServiceClient, context.Context, Request, ...grpc.CallOption) (Response, error),
	request Request,
) (Response, error) {
	engine, err := connect()
	if err != nil {
		var none Response
		return none, err
	}
	return question(engine, ctx, request)
}

// Later returns when to ask again after an error that waiting may heal, and otherwise the error. An
// error would be repeated with delays that grow to minutes.
func Later(ctx context.Context, err error) (time.Duration, error) {
	delay, again := jobpolicyv1grpc.RetryDelay(err)
	if !again {
		return 0, err
	}
	ctrl.LoggerFrom(ctx).Error(err, "the policy engine has not answered", "askedAgainAfter", delay)
	return delay, nil
}

// bounded ends a call after callTimeout, and logs how long an answer took. While the engine is away, a
// call fails at once: a controller with few workers has other objects to look after.
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

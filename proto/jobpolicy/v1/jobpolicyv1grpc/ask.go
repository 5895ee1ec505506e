package jobpolicyv1grpc

import (
	"context"
	"time"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// CallTimeout bounds each call of an Asker. A decision takes milliseconds.
const CallTimeout = 5 * time.Second

// Asker makes an answer.Ask from a client.
func Asker(client PolicyServiceClient) answer.Ask {
	return func(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		ctx, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		return client.DecideJob(ctx, req)
	}
}

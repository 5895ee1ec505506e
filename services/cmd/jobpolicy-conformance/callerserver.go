package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/buildinfo"
)

// watchedEngine answers as the engine does, and lets a watcher see and spoil decisions on
// Jobs. It has only the methods that callers need who decide about Jobs one by one.
type watchedEngine struct {
	jobpolicyv1grpc.UnimplementedPolicyServiceServer
	*watcher
}

func (e watchedEngine) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	e.request(req)
	decision, err := engine.DecideJob(req)
	answer := e.answer(req, decision, err)
	switch {
	case err != nil:
		return nil, refused(err)
	case answer == nil:
		return nil, status.Error(codes.Unavailable, "the answer is lost, on purpose")
	}
	return answer, nil
}

func (watchedEngine) DecideCronJob(_ context.Context, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	decision, err := cronjob.Decide(req)
	return decision, refused(err)
}

func (watchedEngine) MatchSuccessPolicy(_ context.Context, req *jobpolicyv1.MatchSuccessPolicyRequest) (*jobpolicyv1.MatchSuccessPolicyResponse, error) {
	match, err := engine.MatchSuccessPolicy(req)
	return match, refused(err)
}

func (watchedEngine) MatchPodFailurePolicy(_ context.Context, req *jobpolicyv1.MatchPodFailurePolicyRequest) (*jobpolicyv1.MatchPodFailurePolicyResponse, error) {
	match, err := engine.MatchPodFailurePolicy(req)
	return match, refused(err)
}

func (watchedEngine) GetServerInfo(context.Context, *jobpolicyv1.GetServerInfoRequest) (*jobpolicyv1.GetServerInfoResponse, error) {
	return &jobpolicyv1.GetServerInfoResponse{Version: buildinfo.Summary(), ContractVersions: []string{"jobpolicy.v1"}, MaxRequestBytes: maxMessage}, nil
}

func refused(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.InvalidArgument, err.Error())
}

// caller serves a watched engine until enough Jobs are at their end, and reports whether
// the caller did everything right.
func (o *options) caller(ctx context.Context, stdout io.Writer) (passed bool, err error) {
	creds, err := o.server.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return false, fmt.Errorf("--listen: %w", err)
	}
	w := newWatcher()
	server := grpc.NewServer(grpc.Creds(creds), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	jobpolicyv1grpc.RegisterPolicyServiceServer(server, watchedEngine{watcher: w})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.Stop()
	fmt.Fprintf(stdout, "Let the caller ask the engine at %s about %d Jobs.\n", listener.Addr(), o.jobs)
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for w.done() < o.jobs && ctx.Err() == nil {
		select {
		case err := <-served:
			return false, err
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	results := w.results()
	if n := w.done(); n < o.jobs {
		err = fmt.Errorf("%d of %d Jobs came to their end in %s", n, o.jobs, o.timeout)
	}
	return failures(results) == 0, errors.Join(o.report(stdout, results), err)
}

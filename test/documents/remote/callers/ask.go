// Ask asks an engine about a Job, as docs/remote.md says.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/health" // Makes the client heed healthCheckConfig.
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

func main() {
	const maxMessage = 16 << 20
	serviceConfig, err := os.ReadFile("service-config.json")
	check(err)
	conn, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(mutualTLS()),
		grpc.WithDefaultServiceConfig(string(serviceConfig)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage), grpc.WaitForReady(true)))
	check(err)
	defer conn.Close()
	policy := jobpolicyv1grpc.NewPolicyServiceClient(conn)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	request := &jobpolicyv1.DecideJobRequest{
		RequestId: "two-1",
		Now:       timestamppb.Now(),
		Job:       &jobpolicyv1.JobRef{Uid: make([]byte, 16), Namespace: "default", Name: "two"},
		Spec: &jobpolicyv1.JobSpec{
			Parallelism: 2, Completions: new(int32(2)), BackoffLimit: 6,
			RestartPolicy: jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER,
		},
	}
	decision, err := policy.DecideJob(ctx, request)
	check(err)
	if decision.GetRequestId() != request.GetRequestId() || decision.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_APPLY {
		log.Fatalf("not an answer to carry out: %v", decision)
	}
	fmt.Println("pods to create:", decision.GetCreate().GetCount())

	request.Now = nil
	_, err = policy.DecideJob(ctx, request)
	fmt.Println(status.Code(err), jobpolicyv1grpc.ReasonName(jobpolicyv1grpc.ReasonOf(err)))
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			fmt.Println(bad.GetFieldViolations()[0].GetField(), bad.GetFieldViolations()[0].GetDescription())
		}
	}
}

// mutualTLS shows the caller's certificate and trusts the engine's authority alone.
func mutualTLS() credentials.TransportCredentials {
	authority, err := os.ReadFile("tls/ca.crt")
	check(err)
	own, err := tls.LoadX509KeyPair("tls/tls.crt", "tls/tls.key")
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, RootCAs: trusted})
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

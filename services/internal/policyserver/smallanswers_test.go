package policyserver_test

import (
	"io"
	"net"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// Even a small answer keeps its call in memory until it is read. A client that allows no
// bytes to be sent, and reads all else, loses its connection.
func TestASmallAnswerThatIsNotReadEndsTheConnection(t *testing.T) {
	for method, request := range map[string]proto.Message{
		healthv1.Health_Check_FullMethodName:                       &healthv1.HealthCheckRequest{},
		healthv1.Health_Watch_FullMethodName:                       &healthv1.HealthCheckRequest{},
		jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName:     testenv.Snapshot(),
		jobpolicyv1grpc.PolicyService_DecideJobs_FullMethodName:    &jobpolicyv1.DecideJobsRequest{Requests: []*jobpolicyv1.DecideJobRequest{testenv.Snapshot()}},
		jobpolicyv1grpc.PolicyService_GetServerInfo_FullMethodName: &jobpolicyv1.GetServerInfoRequest{},
	} {
		t.Run(method, func(t *testing.T) {
			srv := testengine.Start(t, testengine.Config{SendTimeout: 50 * time.Millisecond})
			conn, err := net.Dial("tcp", srv.Address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if err := testenv.AskWithoutWindow(conn, 1, "", method, request); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the connection stays: %v", err)
			}
		})
	}
}

package policyserver_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// Even a small answer keeps its call in memory until it is read. A client that allows no
// bytes to be sent, and reads all else, loses its connection.
func TestASmallAnswerThatIsNotReadEndsTheConnection(t *testing.T) {
	const check, decide = healthv1.Health_Check_FullMethodName, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName
	gzip := map[string]string{"grpc-encoding": "gzip"} // but the message is not compressed
	for name, call := range map[string]struct {
		method   string
		request  proto.Message
		metadata map[string]string
	}{
		"Check":                      {check, &healthv1.HealthCheckRequest{}, nil},
		"Check that may be gzipped":  {check, &healthv1.HealthCheckRequest{}, gzip},
		"Watch":                      {healthv1.Health_Watch_FullMethodName, &healthv1.HealthCheckRequest{}, nil},
		"Watch that may be gzipped":  {healthv1.Health_Watch_FullMethodName, &healthv1.HealthCheckRequest{}, gzip},
		"DecideJob":                  {decide, testenv.Snapshot(), nil},
		"DecideJob, may be gzipped":  {decide, testenv.Snapshot(), gzip},
		"DecideJob, may be deflated": {decide, testenv.Snapshot(), map[string]string{"grpc-encoding": "deflate"}},
		"an answer without a byte":   {jobpolicyv1grpc.PolicyService_ComputeIndexes_FullMethodName, &jobpolicyv1.ComputeIndexesRequest{}, nil},
		"GetServerInfo":              {jobpolicyv1grpc.PolicyService_GetServerInfo_FullMethodName, &jobpolicyv1.GetServerInfoRequest{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testengine.Start(t, testengine.Config{SendTimeout: 50 * time.Millisecond})
			conn, err := net.Dial("tcp", srv.Address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if err := testenv.AskWithoutWindow(conn, 1, call.metadata, call.method, call.request); err != nil {
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

// An answer without a byte is counted, and its memory is given back when it is read.
func TestAnEmptyAnswerLeavesNoMemory(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{})
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(srv.Dial(t)).ComputeIndexes(patient(t), &jobpolicyv1.ComputeIndexesRequest{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() error {
		return testutil.GatherAndCompare(srv.Registry, strings.NewReader(nothingHeld), "jobpolicy_engine_held_bytes")
	})
}

// A call that is refused is refused before its message arrives, or it would wait for the message
// without being counted.
func TestACallTooManyIsRefusedWithoutItsMessage(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{})
	call := func(conn *grpc.ClientConn, method string) <-chan error {
		t.Helper()
		stream, err := conn.NewStream(patient(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- stream.RecvMsg(&healthv1.HealthCheckResponse{}) }()
		return ended
	}
	for range 2 { // connections of 250 calls each, which is what one caller may have
		conn := srv.Dial(t)
		for range 250 {
			call(conn, healthv1.Health_Check_FullMethodName)
		}
	}
	conn := srv.Dial(t)
	for _, method := range []string{healthv1.Health_Check_FullMethodName, healthv1.Health_List_FullMethodName, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName} {
		testenv.Eventually(t, func() error {
			select {
			case err := <-call(conn, method):
				if status.Code(err) != codes.ResourceExhausted {
					return fmt.Errorf("%s: %w, want RESOURCE_EXHAUSTED", method, err)
				}
				return nil
			case <-time.After(time.Second): // It came before one of the others, and holds that one's place.
				return fmt.Errorf("%s waits for its message", method)
			}
		})
	}
}

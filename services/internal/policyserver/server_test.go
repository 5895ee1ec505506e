package policyserver_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/conformance"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// patience ends calls that hang; it is no expectation.
const patience = time.Minute

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestAPanicFailsOnlyItsCall(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{Decide: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetRequestId() == "bad" {
			panic("secret of the house")
		}
		return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId()}, nil
	}})
	client := jobpolicyv1grpc.NewPolicyServiceClient(srv.Dial(t))
	_, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{RequestId: "bad"})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want INTERNAL without the panic's text", err)
	}
	if _, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{RequestId: "good"}); err != nil {
		t.Errorf("another call after the panic: %v", err)
	}
	if !strings.Contains(srv.Log.String(), "secret of the house") {
		t.Errorf("the panic is not logged:\n%s", srv.Log.String())
	}
}

func TestServerInfo(t *testing.T) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	got, err := client.GetServerInfo(patient(t), &jobpolicyv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &jobpolicyv1.GetServerInfoResponse{
		Version: "v0-test", ContractVersions: []string{"jobpolicy.v1"},
		Capabilities: engine.Capabilities(), MaxRequestBytes: 16 << 20, RulesDigest: conformance.Digest(),
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("server info (-want +got):\n%s", diff)
	}
}

// Decisions, answers to questions and refusals alike have the headers.
func TestEachAnswerSaysWhichEngineGaveIt(t *testing.T) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	want := jobpolicyv1grpc.Build{Version: "v0-test", RulesDigest: conformance.Digest()}
	calls := map[string]func(grpc.CallOption) error{
		"a decision": func(o grpc.CallOption) error {
			_, err := client.DecideJob(patient(t), testenv.Snapshot(), o)
			return err
		},
		"an answer": func(o grpc.CallOption) error {
			_, err := client.ComputeIndexes(patient(t), &jobpolicyv1.ComputeIndexesRequest{}, o)
			return err
		},
		"a refusal": func(o grpc.CallOption) error {
			_, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{}, o)
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want INVALID_ARGUMENT", err)
			}
			return nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var header metadata.MD
			if err := call(grpc.Header(&header)); err != nil {
				t.Fatal(err)
			}
			if got := jobpolicyv1grpc.BuildOf(header); got != want {
				t.Errorf("headers say %+v, want %+v", got, want)
			}
		})
	}
}

func TestReflectionListsTheService(t *testing.T) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: policyserver.ServiceName},
	}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("response = %v, want the descriptor of %s", resp, policyserver.ServiceName)
	}
}

// blocking is an engine whose calls wait until they are let go.
type blocking struct {
	begun chan struct{}
	let   chan struct{}
}

func newBlocking() blocking {
	return blocking{begun: make(chan struct{}, 100), let: make(chan struct{})}
}

func (b blocking) decide(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	b.begun <- struct{}{}
	<-b.let
	return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId()}, nil
}

func TestShutdownSaysNoFirstAndFinishesTheCallInProgress(t *testing.T) {
	b := newBlocking()
	srv := testengine.Start(t, testengine.Config{Decide: b.decide})
	conn := srv.Dial(t)
	watch, err := healthv1.NewHealthClient(conn).Watch(patient(t), &healthv1.HealthCheckRequest{Service: policyserver.ServiceName})
	if err != nil {
		t.Fatal(err)
	}
	assertHealth(t, watch, healthv1.HealthCheckResponse_SERVING)

	answered := make(chan error, 1)
	go func() {
		resp, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{RequestId: "last"})
		if err == nil && resp.GetRequestId() != "last" {
			err = fmt.Errorf("answer to %q", resp.GetRequestId())
		}
		answered <- err
	}()
	<-b.begun

	srv.Drain()
	assertHealth(t, watch, healthv1.HealthCheckResponse_NOT_SERVING)
	stopped := make(chan bool, 1)
	go func() { stopped <- srv.Shutdown(patience) }()
	select {
	case <-stopped:
		t.Fatal("stopped while a call was in progress")
	case <-time.After(50 * time.Millisecond):
	}
	close(b.let)
	if err := <-answered; err != nil {
		t.Errorf("the call in progress: %v", err)
	}
	_ = conn.Close() // ends the health watch, which is a call too
	if !<-stopped {
		t.Error("calls were cut off")
	}
}

func assertHealth(t *testing.T, watch grpc.ServerStreamingClient[healthv1.HealthCheckResponse], want healthv1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	resp, err := watch.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetStatus() != want {
		t.Fatalf("health = %s, want %s", resp.GetStatus(), want)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	b := newBlocking()
	srv := testengine.Start(t, testengine.Config{Decide: b.decide})
	answered := make(chan error, 1)
	client := jobpolicyv1grpc.NewPolicyServiceClient(srv.Dial(t))
	go func() {
		_, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{})
		answered <- err
	}()
	<-b.begun
	// A call that computes cannot be interrupted; let it go once it is cut off.
	stopped := make(chan bool, 1)
	go func() { stopped <- srv.Shutdown(time.Millisecond) }()
	if err := <-answered; status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was cut off: %v, want UNAVAILABLE", err)
	}
	close(b.let)
	if <-stopped {
		t.Error("Shutdown reports that every call ended")
	}
}

// A client that opens a connection and says nothing does not delay the end. Its handshake
// could take 10 s.
func TestShutdownWaitsForNoHandshake(t *testing.T) {
	s := newSecured(t, testengine.Config{}, "")
	silent, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	other := s.as(t, "other")
	if err := decide(patient(t), other); err != nil { // The silent connection was accepted before this one.
		t.Fatal(err)
	}
	if !s.Shutdown(5 * time.Second) {
		t.Error("the end of a handshake was awaited")
	}
}

func TestServerThatCannotKeepUpSaysSo(t *testing.T) {
	b := newBlocking()
	srv := testengine.Start(t, testengine.Config{Decide: b.decide, MaxConcurrentCalls: 4}) // two of one caller
	client := jobpolicyv1grpc.NewPolicyServiceClient(srv.Dial(t))
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if _, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{}); err != nil {
				t.Errorf("a call within the limit: %v", err)
			}
		})
		<-b.begun
	}
	_, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{})
	if status.Code(err) != codes.ResourceExhausted || jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE {
		t.Errorf("a call above the limit: %v, want RESOURCE_EXHAUSTED for CALLER_OVER_SHARE", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := client.DecideJob(short, &jobpolicyv1.DecideJobRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call above the limit with little time: %v, want DEADLINE_EXCEEDED", err)
	}
	close(b.let)
	calls.Wait()
	if _, err := client.DecideJob(patient(t), &jobpolicyv1.DecideJobRequest{}); err != nil {
		t.Errorf("a call after the others ended: %v", err)
	}
}

func TestCallsAreCountedByMethodAndCode(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{})
	conn := srv.Dial(t)
	client := jobpolicyv1grpc.NewPolicyServiceClient(conn)
	good, bad := testenv.Snapshot(), testenv.Snapshot()
	bad.Now = nil
	for _, req := range []*jobpolicyv1.DecideJobRequest{good, good, bad} {
		_, _ = client.DecideJob(patient(t), req)
	}
	_ = sendRaw(patient(t), conn, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, []byte{0xff})
	_ = sendRaw(patient(t), conn, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, make([]byte, 17<<20))
	_ = sendRaw(patient(t), conn, "/jobpolicy.v1.PolicyService/NoSuchMethod", nil)

	want := map[string]float64{
		"DecideJob InvalidArgument": 2, "DecideJob OK": 2, "DecideJob ResourceExhausted": 1, "unknown Unimplemented": 1,
	}
	testenv.Eventually(t, func() error {
		got := handled(t, srv.Registry)
		maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("calls by method and code (-want +got):\n%s", diff)
		}
		return nil
	})
	if problems, err := testutil.GatherAndLint(srv.Registry); err != nil || len(problems) > 0 {
		t.Errorf("metrics lint: %v, %v", problems, err)
	}
}

// handled is grpc_server_handled_total by method and code.
func handled(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, m := range testenv.Metrics(t, r, "grpc_server_handled_total") {
		got[m.Labels["grpc_method"]+" "+m.Labels["grpc_code"]] = m.GetCounter().GetValue()
	}
	return got
}

// An alert sees a code's first call only if the series was there before, at 0.
func TestEveryMethodAndCodeIsExportedBeforeTheFirstCall(t *testing.T) {
	got := handled(t, testengine.Start(t, testengine.Config{}).Registry)
	methods := []string{"unknown"} // for all methods that are not served
	for _, method := range jobpolicyv1grpc.PolicyService_ServiceDesc.Methods {
		methods = append(methods, method.MethodName)
	}
	for _, method := range methods {
		for code := codes.OK; code <= codes.Unauthenticated; code++ {
			if n, there := got[method+" "+code.String()]; !there || n != 0 {
				t.Errorf("%s %s: exported %v as %v, want 0", method, code, there, n)
			}
		}
	}
}

// What decisions cost on the wire is the messages and gRPC's five bytes before each.
func TestBytesOfMessagesAreCounted(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{})
	client := jobpolicyv1grpc.NewPolicyServiceClient(srv.Dial(t))
	req := testenv.Snapshot()
	resp, err := client.DecideJob(patient(t), req)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"request": uint64(proto.Size(req)) + 5, "response": uint64(proto.Size(resp)) + 5}
	testenv.Eventually(t, func() error {
		if diff := cmp.Diff(want, decideBytes(t, srv.Registry)); diff != "" {
			return fmt.Errorf("bytes by direction (-want +got):\n%s", diff)
		}
		return nil
	})
}

// decideBytes sums the sizes of the messages of DecideJob by direction.
func decideBytes(t *testing.T, g prometheus.Gatherer) map[string]uint64 {
	t.Helper()
	sums := map[string]uint64{}
	for _, m := range testenv.Metrics(t, g, "jobpolicy_engine_message_bytes") {
		if m.Labels["grpc_method"] == "DecideJob" {
			sums[m.Labels["direction"]] += uint64(m.GetHistogram().GetSampleSum())
		}
	}
	return sums
}

func TestEqualRequestsGetEqualBytes(t *testing.T) {
	asked := testenv.CronJobSnapshot()
	asked.Spec.RunNow = "please"
	for method, req := range map[string]proto.Message{
		jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName:     testenv.FailedSnapshot(),
		jobpolicyv1grpc.PolicyService_DecideCronJob_FullMethodName: asked,
	} {
		conn := testengine.Start(t, testengine.Config{}).Dial(t)
		message, err := proto.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		var first []byte
		for i := range 20 {
			got, err := rawAnswer(patient(t), conn, method, message)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = got
			}
			if string(got) != string(first) {
				t.Fatalf("%s: answer %d has other bytes than the first", method, i)
			}
		}
	}
}

// rawAnswer returns the bytes of the response as they came over the wire.
func rawAnswer(ctx context.Context, conn *grpc.ClientConn, method string, message []byte) ([]byte, error) {
	var answer []byte
	err := conn.Invoke(ctx, method, message, &answer, grpc.ForceCodecV2(testenv.BytesCodec{}))
	return answer, err
}

package policyserver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/tlsfiles"
)

// A secured is an engine over mutual TLS, with a list of who may call; without, if that is
// empty.
type secured struct {
	*testengine.Engine
	authority *testenv.Authority
	list      string
}

func newSecured(t *testing.T, cfg testengine.Config, callers string) *secured {
	t.Helper()
	s := &secured{authority: testenv.NewAuthority(t, "authority"), list: filepath.Join(t.TempDir(), "callers.yaml")}
	if callers != "" {
		s.allow(t, callers)
		cfg.AuthorizedCallers = s.list
	}
	server := s.authority.Issue(t, "engine")
	files := tlsfiles.Server{CertFile: server.CertFile, KeyFile: server.KeyFile, ClientCAFile: s.authority.File}
	creds, err := files.Credentials((&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = creds
	s.Engine = testengine.Start(t, cfg)
	return s
}

// allow replaces the list.
func (s *secured) allow(t *testing.T, callers string) {
	t.Helper()
	testenv.WriteFile(t, s.list, callers)
}

// as returns a connection of the caller with that name.
func (s *secured) as(t *testing.T, name string) *grpc.ClientConn {
	t.Helper()
	return s.with(t, s.authority.Issue(t, name))
}

// with returns a connection of the caller with that certificate.
func (s *secured) with(t *testing.T, files testenv.Pair, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	creds := credentials.NewTLS(testenv.ClientTLS(t, s.authority.File, files))
	return s.Dial(t, append(opts, grpc.WithTransportCredentials(creds))...)
}

func decide(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(ctx, testenv.Snapshot())
	return err
}

func TestOnlyNamedCallersAreAnsweredAndOnlyWhatTheyMayCall(t *testing.T) {
	s := newSecured(t, testengine.Config{}, `
callers:
- {identity: "cn:executor", methods: ["*"]}
- {identity: "dns:reader", methods: [GetServerInfo]}
`)
	executor, reader, stranger := s.as(t, "executor"), s.as(t, "reader"), s.as(t, "stranger")
	if err := decide(patient(t), executor); err != nil {
		t.Errorf("a caller that is named: %v", err)
	}
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(reader).GetServerInfo(patient(t), &jobpolicyv1.GetServerInfoRequest{}); err != nil {
		t.Errorf("a method that is named: %v", err)
	}
	for name, conn := range map[string]*grpc.ClientConn{"reader": reader, "stranger": stranger} {
		err := decide(patient(t), conn)
		st := status.Convert(err)
		if st.Code() != codes.PermissionDenied || !strings.Contains(st.Message(), "dns:"+name+" may not call DecideJob") {
			t.Errorf("%s: %v, want PERMISSION_DENIED that names caller and method", name, err)
		}
		info, _ := st.Details()[0].(*errdetails.ErrorInfo)
		want := map[string]string{"caller": "dns:" + name, "method": "DecideJob"}
		if diff := cmp.Diff(want, info.GetMetadata()); info.GetReason() != "CALLER_NOT_ALLOWED" || diff != "" {
			t.Errorf("%s: reason %s, metadata (-want +got):\n%s", name, info.GetReason(), diff)
		}
	}
	// Health is for everybody: clients spread their calls by it.
	if _, err := healthv1.NewHealthClient(stranger).Check(patient(t), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	const want = `
# HELP jobpolicy_engine_refused_calls_total Calls that got no answer, by caller and by reason (ErrorReason of the contract).
# TYPE jobpolicy_engine_refused_calls_total counter
jobpolicy_engine_refused_calls_total{caller="dns:reader",reason="CALLER_NOT_ALLOWED"} 1
jobpolicy_engine_refused_calls_total{caller="unnamed",reason="CALLER_NOT_ALLOWED"} 1
`
	testenv.Eventually(t, func() error {
		return testutil.GatherAndCompare(s.Registry, strings.NewReader(want), "jobpolicy_engine_refused_calls_total")
	})
	if n := s.Log.Count("calls refused"); n != 1 {
		t.Errorf("logged %d times, want once for all within a period:\n%s", n, s.Log)
	}
}

func TestListOfCallersIsReloaded(t *testing.T) {
	const executor = "callers:\n- {identity: 'cn:executor', methods: ['*']}\n"
	s := newSecured(t, testengine.Config{}, executor)
	other := s.as(t, "other")
	if err := decide(patient(t), other); status.Code(err) != codes.PermissionDenied {
		t.Fatalf("a caller that is not named: %v, want PERMISSION_DENIED", err)
	}
	s.allow(t, executor+"- {identity: 'cn:other', methods: [DecideJob]}\n")
	testenv.Eventually(t, func() error { return decide(patient(t), other) })
	s.allow(t, "callers: none of your business")
	testenv.Eventually(t, func() error {
		if err := decide(patient(t), other); err != nil {
			t.Fatalf("after a list that cannot be read: %v", err)
		}
		if s.Log.Count("keeping the previous one") == 0 {
			return fmt.Errorf("a list that cannot be read is not logged")
		}
		return nil
	})
	s.allow(t, executor)
	testenv.Eventually(t, func() error {
		if err := decide(patient(t), other); status.Code(err) != codes.PermissionDenied {
			return fmt.Errorf("a caller that is named no more: %v", err)
		}
		return nil
	})
}

// The refusal names methods of other services in full.
func TestARefusedCallOfAnotherServiceIsNamed(t *testing.T) {
	s := newSecured(t, testengine.Config{}, "callers: [{identity: 'cn:executor', methods: ['*']}]")
	const method = "/jobpolicy.v2.PolicyService/DecideJob"
	st := status.Convert(sendRaw(patient(t), s.as(t, "stranger"), method, nil))
	if st.Code() != codes.PermissionDenied || !strings.Contains(st.Message(), "dns:stranger may not call "+method+":") {
		t.Errorf("%v, want PERMISSION_DENIED that names the method", st)
	}
	info, _ := st.Details()[0].(*errdetails.ErrorInfo)
	if got := info.GetMetadata()["method"]; got != method {
		t.Errorf("the metadata names the method %q, want %q", got, method)
	}
	if err := sendRaw(patient(t), s.as(t, "executor"), method, nil); status.Code(err) != codes.Unimplemented {
		t.Errorf("a caller that is named: %v, want UNIMPLEMENTED", err)
	}
}

// A caller that has as many calls open as it may is told to slow down, and others
// go on.
func TestANoisyCallerLeavesOthersTheirPart(t *testing.T) {
	b := newBlocking()
	decideOrBlock := func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if req.GetRequestId() == "noisy" {
			return b.decide(req)
		}
		return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId()}, nil
	}
	s := newSecured(t, testengine.Config{Decide: decideOrBlock, MaxConcurrentCalls: 8},
		"callers:\n- {identity: 'cn:noisy', methods: ['*']}\n- {identity: 'cn:good', methods: ['*']}\n")
	noisy := jobpolicyv1grpc.NewPolicyServiceClient(s.as(t, "noisy"))
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			_, err := noisy.DecideJob(t.Context(), &jobpolicyv1.DecideJobRequest{RequestId: "noisy"})
			errs <- err
		}()
	}
	for range 16 { // 4 of 20 are decided on
		err := <-errs
		st := status.Convert(err)
		if jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE {
			t.Fatalf("a call above the share: %v, want CALLER_OVER_SHARE", err)
		}
		if retry, ok := st.Details()[1].(*errdetails.RetryInfo); !ok || retry.GetRetryDelay().AsDuration() <= 0 {
			t.Fatalf("details = %v, want a delay", st.Details())
		}
	}
	good := s.as(t, "good")
	for range 20 {
		if err := decide(patient(t), good); err != nil {
			t.Fatalf("another caller: %v", err)
		}
	}
	close(b.let)
	for range 4 {
		if err := <-errs; err != nil {
			t.Errorf("a call within the share: %v", err)
		}
	}
}

// receiveTimeout is long enough for requests to arrive on a slow machine. The tests that wait
// for it run in parallel.
const receiveTimeout = 2 * time.Second

func TestARequestThatDoesNotArriveIsGivenUp(t *testing.T) {
	t.Parallel()
	conn := testengine.Start(t, testengine.Config{ReceiveTimeout: receiveTimeout}).Dial(t)
	ctx := patient(t)
	// The calls wait for their requests at the same time.
	open := func(method string) grpc.ClientStream {
		t.Helper()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	decision := open(jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName)
	health := map[string]grpc.ClientStream{}
	for _, method := range []string{healthv1.Health_Check_FullMethodName, healthv1.Health_Watch_FullMethodName} {
		health[method] = open(method)
	}
	err := decision.RecvMsg(&jobpolicyv1.DecideJobResponse{})
	if status.Code(err) != codes.DeadlineExceeded || jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_REQUEST_TOO_SLOW {
		t.Errorf("error = %v, want DEADLINE_EXCEEDED for REQUEST_TOO_SLOW", err)
	}
	for method, stream := range health {
		if err := stream.RecvMsg(&healthv1.HealthCheckResponse{}); err == nil || ctx.Err() != nil {
			t.Errorf("%s without a request: %v, want an error of the server", method, err)
		}
	}
	if err := decide(patient(t), conn); err != nil {
		t.Errorf("another call of the connection: %v", err)
	}
}

// A watch of health has no end, once its request has arrived.
func TestAWatchOfHealthOutlivesTheReceiveTimeout(t *testing.T) {
	t.Parallel()
	srv := testengine.Start(t, testengine.Config{ReceiveTimeout: receiveTimeout})
	watch, err := healthv1.NewHealthClient(srv.Dial(t)).Watch(patient(t), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := watch.Recv()
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Errorf("the watch ended: %v", err)
	case <-time.After(receiveTimeout + time.Second):
	}
}

// awaitReady waits until the connection says that it is ready. Its first call may
// start a moment earlier, so a test that waits for the connection's end begins here.
func awaitReady(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for s := conn.GetState(); s != connectivity.Ready; s = conn.GetState() {
		if !conn.WaitForStateChange(patient(t), s) {
			t.Fatalf("the connection stays %s", s)
		}
	}
}

// A caller that does not read its answers loses its connection, and their memory
// is given back.
func TestAnAnswerThatIsNotReadEndsTheConnection(t *testing.T) {
	srv := testengine.Start(t, testengine.Config{SendTimeout: 50 * time.Millisecond, Decide: func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		return &jobpolicyv1.DecideJobResponse{RequestId: strings.Repeat("x", 4<<20)}, nil
	}})
	conn := srv.Dial(t, grpc.WithStaticStreamWindowSize(64<<10))
	stream, err := conn.NewStream(patient(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, conn)
	if err := stream.SendMsg(testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	// Nothing is read.
	if !conn.WaitForStateChange(patient(t), connectivity.Ready) {
		t.Fatal("the connection stays")
	}
	if err := stream.RecvMsg(&jobpolicyv1.DecideJobResponse{}); status.Code(err) != codes.Unavailable {
		t.Errorf("error = %v, want UNAVAILABLE", err)
	}
	testenv.Eventually(t, func() error {
		return testutil.GatherAndCompare(srv.Registry, strings.NewReader(nothingHeld), "jobpolicy_engine_held_bytes")
	})
}

const nothingHeld = `
# HELP jobpolicy_engine_held_bytes Memory that calls hold, by kind: received (requests as they came), decoded (with what deciding takes), answers (not written yet).
# TYPE jobpolicy_engine_held_bytes gauge
jobpolicy_engine_held_bytes{kind="answers"} 0
jobpolicy_engine_held_bytes{kind="decoded"} 0
jobpolicy_engine_held_bytes{kind="received"} 0
`

// What a caller's decisions hold counts when it connects anew, because a decision goes on
// when its connection is closed.
func TestACallerGetsNoSecondShareByConnectingAnew(t *testing.T) {
	b := newBlocking()
	s := newSecured(t, testengine.Config{Decide: b.decide, MaxConcurrentCalls: 4, MaxConnectionsPerCaller: 1}, "")
	conn := s.as(t, "executor")
	for range 2 { // its share of the processors
		go func() { _ = decide(t.Context(), conn) }()
	}
	for range 2 {
		<-b.begun
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	again := s.as(t, "executor")
	var err error
	testenv.Eventually(t, func() error {
		if err = decide(patient(t), again); status.Code(err) == codes.Unavailable {
			return err // The server has not seen the end of the first connection yet.
		}
		return nil
	})
	if jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_CALLER_OVER_SHARE {
		t.Errorf("a call above the share, of a new connection: %v, want CALLER_OVER_SHARE", err)
	}
	close(b.let)
	testenv.Eventually(t, func() error { return decide(patient(t), again) })
}

// A caller that sends more calls than can be traced does not push
// the spans of others out of the exporter's queue.
func TestNobodyFillsTheQueueOfSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	// The sampler does not ask whether the caller samples.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	s := newSecured(t, testengine.Config{TracerProvider: provider}, "")
	noisy, good := jobpolicyv1grpc.NewPolicyServiceClient(s.as(t, "noisy")), s.as(t, "good")
	began := time.Now()
	for range 4000 {
		if _, err := noisy.DecideJob(patient(t), testenv.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	most := 1000 + 1000*time.Since(began).Seconds()
	testenv.Eventually(t, func() error { // A call's span ends after its answer is sent.
		if n := len(spans.Ended()); n < 1000 {
			return fmt.Errorf("%d spans, want 1,000 at once", n)
		}
		return nil
	})
	if n := len(spans.Ended()); float64(n) > most {
		t.Errorf("%d spans of one caller, want at most %.0f", n, most)
	}
	const trace = "11111111111111111111111111111111"
	if err := decide(metadata.AppendToOutgoingContext(patient(t), "traceparent", "00-"+trace+"-2222222222222222-01"), good); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() error {
		n := 0
		for _, span := range spans.Ended() {
			if span.SpanContext().TraceID().String() == trace {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("%d spans of the other caller, want those of its call and its decision", n)
		}
		return nil
	})
}

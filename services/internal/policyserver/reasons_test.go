package policyserver_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/refusal"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

const decideJob = jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName

// odd is an engine that does what it is told to by the request's id.
func odd(b blocking) func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	return func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		switch req.GetRequestId() {
		case "panic":
			panic("on purpose")
		case "bare":
			return nil, status.Error(codes.NotFound, "an error without a reason")
		case "block":
			return b.decide(req)
		case "huge":
			return &jobpolicyv1.DecideJobResponse{RequestId: strings.Repeat("x", 17<<20)}, nil
		case "large":
			return &jobpolicyv1.DecideJobResponse{RequestId: strings.Repeat("x", 15<<20)}, nil
		default:
			return &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId()}, nil
		}
	}
}

// ask sends a request that is told apart by its id.
func ask(ctx context.Context, conn *grpc.ClientConn, id string) error {
	_, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(ctx, &jobpolicyv1.DecideJobRequest{RequestId: id})
	return err
}

// provoked is every kind of error that the service returns, by asking for it.
func provoked(t *testing.T) []error {
	t.Helper()
	plain := testengine.Start(t, testengine.Config{}).Dial(t)
	unsupported := testenv.Snapshot()
	unsupported.Spec.ProtoReflect().SetUnknown([]byte("\xfa\x7f\x01x"))
	_, unsupportedErr := jobpolicyv1grpc.NewPolicyServiceClient(plain).DecideJob(patient(t), unsupported)
	slow, err := testengine.Start(t, testengine.Config{ReceiveTimeout: time.Millisecond}).Dial(t).NewStream(patient(t),
		&grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, decideJob)
	if err != nil {
		t.Fatal(err)
	}
	strange := testengine.Start(t, testengine.Config{Decide: odd(newBlocking())}).Dial(t)
	secured := newSecured(t, testengine.Config{}, "callers: [{identity: 'cn:a', methods: ['*']}]")
	return []error{
		sendRaw(patient(t), plain, decideJob, []byte{0xff}),
		unsupportedErr,
		sendRaw(patient(t), plain, "/jobpolicy.v1.PolicyService/NoSuchMethod", nil),
		sendRaw(patient(t), plain, "/jobpolicy.v2.PolicyService/DecideJob", nil),
		compressed(t, plain, "gzip"),
		compressed(t, plain, "deflate"),
		sendRaw(patient(t), plain, decideJob, make([]byte, 20<<20)),
		ask(patient(t), strange, "huge"),
		ask(patient(t), strange, "panic"),
		ask(patient(t), strange, "bare"),
		slow.RecvMsg(&jobpolicyv1.DecideJobResponse{}),
		decide(patient(t), secured.as(t, "b")),
		noRoom(t, "a"),
		noRoom(t, "c"),
		unread(t),
		// A client makes these itself, before the server's arrive.
		refusal.FromContext(context.DeadlineExceeded),
		refusal.FromContext(context.Canceled),
	}
}

// compressed asks with a compressed message.
func compressed(t *testing.T, conn *grpc.ClientConn, encoding string) error {
	t.Helper()
	_, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(patient(t), testenv.Snapshot(), grpc.UseCompressor(encoding))
	return err
}

// noRoom asks as a third call, when two callers hold a turn each and there are no
// more.
func noRoom(t *testing.T, caller string) error {
	t.Helper()
	b := newBlocking()
	s := newSecured(t, testengine.Config{Decide: odd(b), MaxConcurrentCalls: 2},
		"callers: [{identity: 'cn:a', methods: ['*']}, {identity: 'cn:b', methods: ['*']}, {identity: 'cn:c', methods: ['*']}]")
	t.Cleanup(func() { close(b.let) })
	for _, name := range []string{"a", "b"} {
		conn := s.as(t, name)
		go func() { _ = ask(t.Context(), conn, "block") }()
		<-b.begun
	}
	return ask(patient(t), s.as(t, caller), "")
}

// unread asks when two large answers are not read.
func unread(t *testing.T) error {
	t.Helper()
	s := testengine.Start(t, testengine.Config{Decide: odd(newBlocking())})
	for range 2 {
		stream, err := s.Dial(t, grpc.WithStaticStreamWindowSize(64<<10)).NewStream(patient(t),
			&grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, decideJob)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(&jobpolicyv1.DecideJobRequest{RequestId: "large"}); err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Header(); err != nil { // the answer is on its way
			t.Fatal(err)
		}
	}
	return ask(patient(t), s.Dial(t), "large")
}

// retried are the reasons for which the answer may be another one later.
var retried = []string{"OVERLOADED", "CALLER_OVER_SHARE", "UNREAD_ANSWERS", "REQUEST_TOO_SLOW", "CALLER_NOT_ALLOWED", "INTERNAL"}

func TestTheContractsTableOfErrorsIsWhatTheServiceReturns(t *testing.T) {
	got := map[string]bool{}
	for _, err := range provoked(t) {
		reason := jobpolicyv1grpc.ReasonName(jobpolicyv1grpc.ReasonOf(err))
		got[codeName(status.Code(err))+" "+reason] = true
		if len(status.Convert(err).Details()) == 0 {
			t.Errorf("%v has no details", err)
			continue
		}
		if has := strings.Contains(status.Convert(err).Proto().String(), "RetryInfo"); has != slices.Contains(retried, reason) {
			t.Errorf("%s: RetryInfo is there: %t", reason, has)
		}
	}
	source := testenv.ReadFile(t, "../../../proto/jobpolicy/v1/policy_service.proto")
	want := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^//  ([A-Z_]+) +([A-Z_]+)  `).FindAllStringSubmatch(string(source), -1) {
		want[row[1]+" "+row[2]] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("codes and reasons (-table +returned):\n%s", diff)
	}
	for name := range jobpolicyv1.ErrorReason_value {
		reason := strings.TrimPrefix(name, "ERROR_REASON_")
		if reason != "UNSPECIFIED" && !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(row string) bool { return strings.HasSuffix(row, " "+reason) }) {
			t.Errorf("the table lacks %s", reason)
		}
	}
}

// codeName is the code as the contract writes it.
func codeName(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	return strings.ToUpper(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(c.String(), "${1}_$2"))
}

package policyserver_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

// The engine's tests list the mistakes. These show what a caller sees of them: each field
// that is wrong, by the name that it has in the request.
func TestBadRequestsAreRefusedByField(t *testing.T) {
	type request = jobpolicyv1.DecideJobRequest
	failed := func(uid byte) *jobpolicyv1.UnaccountedPod {
		return &jobpolicyv1.UnaccountedPod{
			Uid: testenv.UID(uid), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: timestamppb.New(testenv.Now),
		}
	}
	cases := map[string]struct {
		spoil func(*request)
		want  []string // the fields that must be named
	}{
		"a message that is absent": {spoil: func(r *request) { r.Job = nil }, want: []string{"job"}},
		"a number out of range":    {spoil: func(r *request) { r.Spec.Completions = proto.Int32(-3) }, want: []string{"spec.completions"}},
		"a text that is too long":  {spoil: func(r *request) { r.RequestId = strings.Repeat("x", 129) }, want: []string{"request_id"}},
		"bytes that are too long":  {spoil: func(r *request) { r.Job.Uid = make([]byte, 65) }, want: []string{"job.uid"}},
		"a time beyond all times":  {spoil: func(r *request) { r.Now.Seconds = 1 << 60 }, want: []string{"now"}},
		"an entry of a list":       {spoil: func(r *request) { r.ConfirmedReleases = [][]byte{{}} }, want: []string{"confirmed_releases[0]"}},
		"entries that exclude each other": {
			spoil: func(r *request) { r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{failed(2), failed(3), failed(2)} },
			want:  []string{"unaccounted_pods[2].uid"},
		},
		"several fields": {
			spoil: func(r *request) { r.Now, r.Job.Name, r.Spec.Parallelism = nil, "", -1 },
			want:  []string{"now", "job.name", "spec.parallelism"},
		},
	}
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := testenv.Snapshot()
			if _, err := client.DecideJob(t.Context(), req); err != nil {
				t.Fatalf("the request is refused before it is spoilt: %v", err)
			}
			tc.spoil(req)
			_, err := client.DecideJob(t.Context(), req)
			for _, field := range tc.want {
				assertInvalid(t, err, field)
			}
		})
	}
}

func TestBadCronJobRequestsAreRefusedByField(t *testing.T) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	req := testenv.CronJobSnapshot()
	if _, err := client.DecideCronJob(t.Context(), req); err != nil {
		t.Fatalf("the request is refused before it is spoilt: %v", err)
	}
	req.CronJob.Name = strings.Repeat("x", 53)
	req.Jobs = []*jobpolicyv1.OwnedJob{{Uid: testenv.UID(4), Name: "j"}}
	_, err := client.DecideCronJob(t.Context(), req)
	assertInvalid(t, err, "cron_job.name")
	assertInvalid(t, err, "jobs[0].outcome")
}

// assertInvalid wants INVALID_ARGUMENT with the reason INVALID_REQUEST, and details that
// name the field.
func assertInvalid(t *testing.T, err error, field string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.InvalidArgument {
		t.Fatalf("error = %v, want INVALID_ARGUMENT", err)
	}
	if reason := jobpolicyv1grpc.ReasonOf(err); reason != jobpolicyv1.ErrorReason_ERROR_REASON_INVALID_REQUEST {
		t.Errorf("reason = %v, want INVALID_REQUEST", reason)
	}
	var fields []string
	for _, detail := range st.Details() {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, v := range bad.GetFieldViolations() {
			if v.GetField() == field && v.GetDescription() != "" {
				return
			}
			fields = append(fields, v.GetField())
		}
	}
	t.Errorf("violations of %q, want one of %q with a description", fields, field)
}

func sendRaw(ctx context.Context, conn *grpc.ClientConn, method string, message []byte) error {
	return conn.Invoke(ctx, method, message, new([]byte), grpc.ForceCodecV2(testenv.BytesCodec{}))
}

func TestBytesThatAreNoRequest(t *testing.T) {
	garbage := make([]byte, 10<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(garbage) // never fails
	emptyRows := []byte(strings.Repeat("\x3a\x00", 5<<20))
	cases := map[string]struct {
		message []byte
		field   string // empty: the message as a whole
	}{
		"10 MiB of garbage":            {garbage, ""},
		"10 MiB of 0xff":               {[]byte(strings.Repeat("\xff", 10<<20)), ""},
		"10 MiB of empty rows":         {emptyRows, "unaccounted_pods"},
		"a request that was cut short": {[]byte("\x1a\x7f"), ""},
		"text that is not UTF-8":       {[]byte("\x0a\x01\xff"), ""},
		"nothing at all":               {nil, "now"},
	}
	engine := testengine.Start(t, testengine.Config{})
	conn := engine.Dial(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assertInvalid(t, sendRaw(t.Context(), conn, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, tc.message), tc.field)
			cronField := map[string]string{"unaccounted_pods": "absent_jobs"}[tc.field] // the list of the same number
			if cronField == "" {
				cronField = tc.field
			}
			assertInvalid(t, sendRaw(t.Context(), conn, jobpolicyv1grpc.PolicyService_DecideCronJob_FullMethodName, tc.message), cronField)
		})
	}
	// The server has survived it all.
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(conn).DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Errorf("a valid request afterwards: %v", err)
	}
}

// Nobody counts the memory of calls of other services, and callers that are not in the list
// may call health.
func TestMessagesOfOtherServicesAreSmall(t *testing.T) {
	health := healthv1.NewHealthClient(testengine.Start(t, testengine.Config{}).Dial(t))
	large := &healthv1.HealthCheckRequest{Service: strings.Repeat("x", 1<<20)}
	calls := map[string]func(...grpc.CallOption) error{
		"Check": func(opts ...grpc.CallOption) error {
			_, err := health.Check(patient(t), large, opts...)
			return err
		},
		"Watch": func(opts ...grpc.CallOption) error {
			watch, err := health.Watch(patient(t), large, opts...)
			if err == nil {
				_, err = watch.Recv()
			}
			return err
		},
	}
	for name, call := range calls {
		if err := call(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: error = %v, want RESOURCE_EXHAUSTED", name, err)
		}
		if err := call(grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s, compressed: error = %v, want RESOURCE_EXHAUSTED", name, err)
		}
	}
}

package policyserver_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// row is a valid row of the ledger.
func row(uid byte) *jobpolicyv1.UnaccountedPod {
	return &jobpolicyv1.UnaccountedPod{
		Uid: testenv.UID(uid), Phase: jobpolicyv1.PodPhase_POD_PHASE_FAILED, FinishedTime: timestamppb.New(testenv.Now),
	}
}

func indexed(req *jobpolicyv1.DecideJobRequest) {
	req.Spec.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

func ranges(bounds ...int32) *jobpolicyv1.IndexSet {
	set := &jobpolicyv1.IndexSet{}
	for i := 0; i < len(bounds); i += 2 {
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: bounds[i], Last: bounds[i+1]})
	}
	return set
}

func TestBadRequestsAreRefusedByField(t *testing.T) {
	cases := map[string]struct {
		spoil func(*jobpolicyv1.DecideJobRequest)
		want  string // the field that must be named
	}{
		"no time":        {func(r *jobpolicyv1.DecideJobRequest) { r.Now = nil }, "now"},
		"no job":         {func(r *jobpolicyv1.DecideJobRequest) { r.Job = nil }, "job"},
		"no spec":        {func(r *jobpolicyv1.DecideJobRequest) { r.Spec = nil }, "spec"},
		"a long UID":     {func(r *jobpolicyv1.DecideJobRequest) { r.Job.Uid = make([]byte, 65) }, "job.uid"},
		"a nameless job": {func(r *jobpolicyv1.DecideJobRequest) { r.Job.Name = "" }, "job.name"},
		"a time beyond the calendar": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Now = &timestamppb.Timestamp{Seconds: 1 << 60} }, "now",
		},
		"a request id that is too long": {
			func(r *jobpolicyv1.DecideJobRequest) { r.RequestId = strings.Repeat("x", 129) }, "request_id",
		},
		"negative parallelism": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Spec.Parallelism = -1 }, "spec.parallelism",
		},
		"negative completions": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Spec.Completions = proto.Int32(-3) }, "spec.completions",
		},
		"a negative back-off limit": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Spec.BackoffLimit = -1 }, "spec.backoff_limit",
		},
		"a negative count of active pods": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Pods = &jobpolicyv1.PodSummary{Active: -1} }, "pods.active",
		},
		"a negative counter in the status": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Status = &jobpolicyv1.JobStatus{Failed: -1} }, "status.failed",
		},
		"negative creations in flight": {
			func(r *jobpolicyv1.DecideJobRequest) { r.InFlight = &jobpolicyv1.InFlight{Creates: -1} }, "in_flight.creates",
		},
		"a deadline of less than no time": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Spec.ActiveDeadlineSeconds = proto.Int64(-1) }, "spec.active_deadline_seconds",
		},
		"more ready pods than active ones": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Pods = &jobpolicyv1.PodSummary{Active: 1, Ready: 2} }, "pods.ready",
		},
		"more tracked pods than active ones": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Pods = &jobpolicyv1.PodSummary{Active: 1, TrackedActive: 2} }, "pods.tracked_active",
		},
		"more active indexes than active pods": {
			func(r *jobpolicyv1.DecideJobRequest) {
				indexed(r)
				r.Pods = &jobpolicyv1.PodSummary{Active: 1, ActiveIndexes: ranges(0, 1)}
			}, "pods.active_indexes",
		},
		"a row of a pod that neither finished nor is being deleted": {
			func(r *jobpolicyv1.DecideJobRequest) {
				pod := row(2)
				pod.Phase = jobpolicyv1.PodPhase_POD_PHASE_RUNNING
				r.Pods = &jobpolicyv1.PodSummary{Terminating: 1}
				r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{pod}
			}, "unaccounted_pods[0].deleting",
		},
		"an index that is too large": {
			func(r *jobpolicyv1.DecideJobRequest) {
				indexed(r)
				pod := row(2)
				pod.Index = proto.Int32(1<<31 - 1)
				r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{pod}
			}, "unaccounted_pods[0].index",
		},
		"a negative index": {
			func(r *jobpolicyv1.DecideJobRequest) {
				indexed(r)
				pod := row(2)
				pod.Index = proto.Int32(-1)
				r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{pod}
			}, "unaccounted_pods[0].index",
		},
		"ranges out of order": {
			func(r *jobpolicyv1.DecideJobRequest) {
				indexed(r)
				r.Status = &jobpolicyv1.JobStatus{CompletedIndexes: ranges(5, 6, 1, 2)}
			}, "status.completed_indexes.ranges",
		},
		"a range that ends before it begins": {
			func(r *jobpolicyv1.DecideJobRequest) {
				indexed(r)
				r.Status = &jobpolicyv1.JobStatus{CompletedIndexes: ranges(5, 4)}
			}, "status.completed_indexes.ranges",
		},
		"a UID in two rows": {
			func(r *jobpolicyv1.DecideJobRequest) {
				r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{row(2), row(3), row(2)}
			}, "unaccounted_pods[2].uid",
		},
		"a UID in both lists of the status": {
			func(r *jobpolicyv1.DecideJobRequest) {
				r.Status = &jobpolicyv1.JobStatus{Uncounted: &jobpolicyv1.UncountedTerminatedPods{
					Succeeded: [][]byte{testenv.UID(2)}, Failed: [][]byte{testenv.UID(2)},
				}}
			}, "status.uncounted.failed[0]",
		},
		"a release that is confirmed of a pod that has a row": {
			func(r *jobpolicyv1.DecideJobRequest) {
				r.UnaccountedPods = []*jobpolicyv1.UnaccountedPod{row(2)}
				r.ConfirmedReleases = [][]byte{testenv.UID(2)}
			}, "confirmed_releases[0]",
		},
		"an indexed job without completions": {
			func(r *jobpolicyv1.DecideJobRequest) { indexed(r); r.Spec.Completions = nil }, "spec.completions",
		},
		"a version that is no number": {
			func(r *jobpolicyv1.DecideJobRequest) { r.Freshness = &jobpolicyv1.Freshness{JobObserved: "seven"} }, "freshness.job_observed",
		},
		"fewer rows of active pods than active pods": {
			func(r *jobpolicyv1.DecideJobRequest) {
				r.Pods = &jobpolicyv1.PodSummary{Active: 2}
				r.ActivePods = &jobpolicyv1.ActivePods{}
			}, "active_pods.pods",
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
			assertInvalid(t, err, tc.want)
		})
	}
}

func TestBadCronJobRequestsAreRefusedByField(t *testing.T) {
	type request = jobpolicyv1.DecideCronJobRequest
	cases := map[string]struct {
		spoil func(*request)
		want  string // the field that must be named
	}{
		"no time":               {func(r *request) { r.Now = nil }, "now"},
		"no CronJob":            {func(r *request) { r.CronJob = nil }, "cron_job"},
		"no spec":               {func(r *request) { r.Spec = nil }, "spec"},
		"a short UID":           {func(r *request) { r.CronJob.Uid = []byte("short") }, "cron_job.uid"},
		"a name that is long":   {func(r *request) { r.CronJob.Name = strings.Repeat("x", 53) }, "cron_job.name"},
		"no creation time":      {func(r *request) { r.Spec.CreationTime = nil }, "spec.creation_time"},
		"a schedule of 4097":    {func(r *request) { r.Spec.Schedule = strings.Repeat("x", 4097) }, "spec.schedule"},
		"a caller in no zone":   {func(r *request) { r.Spec.LocalTimeZone = "Nowhere" }, "spec.local_time_zone"},
		"a Job without outcome": {func(r *request) { r.Jobs = []*jobpolicyv1.OwnedJob{{Uid: testenv.UID(4), Name: "j"}} }, "jobs[0].outcome"},
		"a version that is no number": {
			func(r *request) { r.Freshness = &jobpolicyv1.CronJobFreshness{JobsWritten: "seven"} }, "freshness.jobs_written",
		},
	}
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := testenv.CronJobSnapshot()
			if _, err := client.DecideCronJob(t.Context(), req); err != nil {
				t.Fatalf("the request is refused before it is spoilt: %v", err)
			}
			tc.spoil(req)
			_, err := client.DecideCronJob(t.Context(), req)
			assertInvalid(t, err, tc.want)
		})
	}
}

// assertInvalid wants INVALID_ARGUMENT that names the field in its details.
func assertInvalid(t *testing.T, err error, field string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.InvalidArgument {
		t.Fatalf("error = %v, want INVALID_ARGUMENT", err)
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

func TestMessageAboveTheLimitIsResourceExhausted(t *testing.T) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	err := sendRaw(t.Context(), conn, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, make([]byte, 20<<20))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("error = %v, want RESOURCE_EXHAUSTED", err)
	}
}

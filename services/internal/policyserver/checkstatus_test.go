package policyserver_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/statusrules"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
)

// check asks for a status that two rules refuse.
func check() *jobpolicyv1.CheckJobStatusRequest {
	return &jobpolicyv1.CheckJobStatusRequest{KubernetesMinor: statusrules.NewestMinor, Updates: []*jobpolicyv1.JobStatusUpdate{{
		Spec:   &jobpolicyv1.JobSpec{Parallelism: 1},
		Before: &jobpolicyv1.JobStatus{Failed: 2},
		After:  &jobpolicyv1.JobStatus{Failed: 1, Ready: proto.Int32(1)},
	}}}
}

func TestBadChecksAreRefusedByField(t *testing.T) {
	cases := map[string]struct {
		spoil func(*jobpolicyv1.CheckJobStatusRequest)
		want  string
	}{
		"no spec":   {spoil: func(r *jobpolicyv1.CheckJobStatusRequest) { r.Updates[0].Spec = nil }, want: "updates[0].spec"},
		"no status": {spoil: func(r *jobpolicyv1.CheckJobStatusRequest) { r.Updates[0].After = nil }, want: "updates[0].after"},
		"a version that is absent": {
			spoil: func(r *jobpolicyv1.CheckJobStatusRequest) { r.KubernetesMinor = 0 },
			want:  "kubernetes_minor",
		},
		"a version to come": {
			spoil: func(r *jobpolicyv1.CheckJobStatusRequest) { r.KubernetesMinor = statusrules.NewestMinor + 1 },
			want:  "kubernetes_minor",
		},
		"a gate that is locked": {
			spoil: func(r *jobpolicyv1.CheckJobStatusRequest) { r.JobManagedByGate = proto.Bool(false) },
			want:  "job_managed_by_gate",
		},
		"a list above the limit of every list": {
			spoil: func(r *jobpolicyv1.CheckJobStatusRequest) {
				r.Updates[0].After.Uncounted = &jobpolicyv1.UncountedTerminatedPods{Failed: make([][]byte, 200_001)}
			},
			want: "updates.after.uncounted.failed",
		},
	}
	client := jobpolicyv1grpc.NewPolicyServiceClient(testengine.Start(t, testengine.Config{}).Dial(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := check()
			tc.spoil(req)
			_, err := client.CheckJobStatus(patient(t), req)
			assertInvalid(t, err, tc.want)
		})
	}
}

func TestBytesThatAreNoCheck(t *testing.T) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	method := jobpolicyv1grpc.PolicyService_CheckJobStatus_FullMethodName
	assertInvalid(t, sendRaw(patient(t), conn, method, []byte("\x0a\x7f")), "")
	assertInvalid(t, sendRaw(patient(t), conn, method, nil), "kubernetes_minor")
}

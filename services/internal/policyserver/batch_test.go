package policyserver_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	jobpolicyv1grpc "jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testengine"
	"jobpolicy.dev/services/internal/testenv"
)

// batchItems are the method that answers one item of each batch, and what makes items for
// it. No two items have the same answer, and every third is refused.
var batchItems = map[string]struct {
	single string
	item   func(i int) proto.Message
}{
	"DecideJobs": {
		single: "DecideJob",
		item: func(i int) proto.Message {
			req := testenv.Snapshot()
			if i%3 == 2 {
				req = testenv.FailedSnapshot()
			}
			if bad(i) {
				req.Spec.Parallelism = int32(-i)
			}
			req.RequestId = "request-" + strconv.Itoa(i)
			return req
		},
	},
	"DecideCronJobs": {
		single: "DecideCronJob",
		item: func(i int) proto.Message {
			req := testenv.CronJobSnapshot()
			if bad(i) {
				req.Spec.CreationTime = nil
			}
			req.RequestId = "request-" + strconv.Itoa(i)
			return req
		},
	},
	"CheckJobStatuses": {
		single: "CheckJobStatus",
		item: func(i int) proto.Message {
			req := check()
			req.Before.Failed = int32(i)
			if bad(i) {
				req.KubernetesMinor = 1
			}
			return req
		},
	},
	"BatchMatchSuccessPolicy": {
		single: "MatchSuccessPolicy",
		item: func(i int) proto.Message {
			rules := make([]*jobpolicyv1.SuccessPolicyRule, 20)
			for n := range rules {
				rules[n] = &jobpolicyv1.SuccessPolicyRule{SucceededCount: proto.Int32(int32(20 - n))}
			}
			req := &jobpolicyv1.MatchSuccessPolicyRequest{
				Policy: &jobpolicyv1.SuccessPolicy{Rules: rules}, Completions: 20, SucceededIndexes: ranges(0, int32(i%20)),
			}
			if bad(i) {
				req.Completions = -1
			}
			return req
		},
	},
	"BatchChoosePodsToDelete": {
		single: "ChoosePodsToDelete",
		item: func(i int) proto.Message {
			req := &jobpolicyv1.ChoosePodsToDeleteRequest{
				Pods: []*jobpolicyv1.ActivePod{{Uid: testenv.UID(byte(i)), Phase: jobpolicyv1.PodPhase_POD_PHASE_PENDING}}, Excess: 1,
			}
			if bad(i) {
				req.Excess = -1
			}
			return req
		},
	},
	"BatchComputeIndexes": {
		single: "ComputeIndexes",
		item: func(i int) proto.Message {
			req := &jobpolicyv1.ComputeIndexesRequest{Completions: 100, CompletedIndexes: ranges(0, int32(i))}
			if bad(i) {
				req.MaxMissing = -1
			}
			return req
		},
	},
}

func bad(i int) bool { return i%3 == 1 }

// batches are the methods of the contract that take many requests.
func batches() []protoreflect.MethodDescriptor {
	var found []protoreflect.MethodDescriptor
	file := jobpolicyv1grpc.File_jobpolicy_v1_policy_service_proto
	methods := file.Services().ByName("PolicyService").Methods()
	for i := range methods.Len() {
		if m := methods.Get(i); m.Input().Fields().ByName("requests") != nil {
			found = append(found, m)
		}
	}
	return found
}

// invoke calls a method by its name.
func invoke(t *testing.T, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, req proto.Message) (proto.Message, error) {
	t.Helper()
	resp := newMessage(t, m.Output())
	err := conn.Invoke(patient(t), "/"+string(m.Parent().FullName())+"/"+string(m.Name()), req, resp)
	return resp, err
}

func newMessage(t *testing.T, m protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	known, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return known.New().Interface()
}

// batchOf is a request with n items.
func batchOf(t *testing.T, m protoreflect.MethodDescriptor, n int, item func(int) proto.Message) proto.Message {
	t.Helper()
	batch := newMessage(t, m.Input())
	requests := batch.ProtoReflect().Mutable(m.Input().Fields().ByName("requests")).List()
	for i := range n {
		requests.Append(protoreflect.ValueOfMessage(item(i).ProtoReflect()))
	}
	return batch
}

// Each item of a batch gets what it gets by itself, in the batch's order.
func TestBatchesKeepOrderAndTakeEachItemByItself(t *testing.T) {
	const items = 30
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	for _, m := range batches() {
		t.Run(string(m.Name()), func(t *testing.T) {
			is, found := batchItems[string(m.Name())]
			if !found {
				t.Fatal("has no items here")
			}
			got, err := invoke(t, conn, m, batchOf(t, m, items, is.item))
			if err != nil {
				t.Fatal(err)
			}
			single := m.Parent().(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(is.single))
			want := newMessage(t, m.Output())
			results := want.ProtoReflect().Mutable(m.Output().Fields().ByName("results")).List()
			refused := 0
			for i := range items {
				resp, err := invoke(t, conn, single, is.item(i))
				fields := results.AppendMutable().Message()
				if err == nil {
					fields.Set(fields.Descriptor().Fields().ByNumber(1), protoreflect.ValueOfMessage(resp.ProtoReflect()))
				} else {
					refused++
					fields.Set(fields.Descriptor().Fields().ByName("error"), protoreflect.ValueOfMessage(status.Convert(err).Proto().ProtoReflect()))
				}
			}
			if refused != items/3 {
				t.Errorf("%d of %d items are refused one by one, want a third", refused, items)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("batch differs from single calls (-single +batch):\n%s", diff)
			}
		})
	}
}

func TestBatchesAboveTheLimitAreRefusedAsAWhole(t *testing.T) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	for _, m := range batches() {
		empty := newMessage(t, m.Input().Fields().ByName("requests").Message())
		_, err := invoke(t, conn, m, batchOf(t, m, 1001, func(int) proto.Message { return empty }))
		assertInvalid(t, err, "requests")
	}
}

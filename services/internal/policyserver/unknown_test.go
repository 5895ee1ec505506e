package policyserver_test

import (
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/policyserver"
	"jobpolicy.dev/services/internal/testengine"
)

// A place is a message or an enum field in a request, at any depth.
type place struct {
	// path is where it stands, in the request that says what is unknown there.
	path string
	// plant puts something unknown there.
	plant func()
	enum  protoreflect.FullName
}

// fill sets every field that is a message, and adds the places in m to found.
// Lists get two elements, of which the second is a place.
func fill(t *testing.T, m protoreflect.Message, path string, number protowire.Number, found *[]place) {
	t.Helper()
	*found = append(*found, place{path: join(path, fmt.Sprint(number)), plant: func() {
		m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1))
	}})
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		at := join(path, string(field.Name()))
		switch {
		case field.IsMap():
			if value := field.MapValue(); value.Message() != nil || value.Enum() != nil {
				t.Fatalf("%s is a map of messages or enums, which nobody looks into for unknowns", field.FullName())
			}
		case field.Message() != nil && field.IsList():
			list := m.Mutable(field).List()
			list.AppendMutable()
			fill(t, list.AppendMutable().Message(), at+"[1]", number, found)
		case field.Message() != nil:
			fill(t, m.Mutable(field).Message(), at, number, found)
		case field.Enum() != nil && field.IsList():
			t.Fatalf("%s is a list of enums, which this test does not fill", field.FullName())
		case field.Enum() != nil:
			*found = append(*found, place{path: at, enum: field.FullName(), plant: func() {
				m.Set(field, protoreflect.ValueOfEnum(9999))
			}})
		}
	}
}

func newMessage(t *testing.T, m protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	known, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return known.New().Interface()
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// unsupportedField is the field that the error says is not known; empty for any
// other answer.
func unsupportedField(err error) string {
	if status.Code(err) != codes.Unimplemented || jobpolicyv1grpc.ReasonOf(err) != jobpolicyv1.ErrorReason_ERROR_REASON_UNSUPPORTED_FIELD {
		return ""
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()["field"]
		}
	}
	return ""
}

// eachPlace asks every method of the contract once for each place of its request,
// with something unknown there alone.
func eachPlace(t *testing.T, number protowire.Number, check func(t *testing.T, method string, p place, err error)) {
	conn := testengine.Start(t, testengine.Config{}).Dial(t)
	methods := jobpolicyv1grpc.File_jobpolicy_v1_policy_service_proto.Services().ByName("PolicyService").Methods()
	for i := range methods.Len() {
		method := methods.Get(i)
		t.Run(string(method.Name()), func(t *testing.T) {
			for at, n := 0, 1; at < n; at++ {
				var places []place
				req, answer := newMessage(t, method.Input()), newMessage(t, method.Output())
				fill(t, req.ProtoReflect(), "", number, &places)
				n = len(places)
				places[at].plant()
				err := conn.Invoke(patient(t), "/"+policyserver.ServiceName+"/"+string(method.Name()), req, answer)
				check(t, string(method.Name()), places[at], err)
			}
		})
	}
}

// The contract names two places whose unknowns have no effect.
func ignored(method string, p place) bool {
	return method == "GetServerInfo" || p.enum == "jobpolicy.v1.Deferral.step"
}

func TestUnknownsAnywhereAreRefusedByTheirPath(t *testing.T) {
	for _, number := range []protowire.Number{999, 2000} {
		eachPlace(t, number, func(t *testing.T, method string, p place, err error) {
			want := p.path
			if ignored(method, p) {
				want = ""
			}
			if got := unsupportedField(err); got != want {
				t.Errorf("an unknown at %s: field %q is named, want %q (error %v)", p.path, got, want, err)
			}
		})
	}
}

func TestIgnorableFieldsAnywhereAreIgnored(t *testing.T) {
	for _, number := range []protowire.Number{1000, 1999} {
		eachPlace(t, number, func(t *testing.T, _ string, p place, err error) {
			if got := unsupportedField(err); p.enum == "" && got != "" {
				t.Errorf("field %s is refused, want it ignored", got)
			}
		})
	}
}

// The fields of today's contract with an ignorable number, each with why a caller
// can live with an engine that does not know it.
var ignorableFields = map[protoreflect.FullName]string{
	"jobpolicy.v1.JobSpec.controlled":                      "read only with Settings.pod_groups, which an engine that does not know it refuses",
	"jobpolicy.v1.JobSpec.group_template_name":             "as controlled",
	"jobpolicy.v1.JobSpec.scheduling":                      "as controlled",
	"jobpolicy.v1.CronJobStatus.next_schedule_time":        "read only with CronJobOptions.publish_next_schedule_time, which an engine that does not know it refuses",
	"jobpolicy.v1.DecideJobRequest.seen_suspended":         "an engine that ignores it starts the Job, too; only the events and the condition of the suspension are missing",
	"jobpolicy.v1.Verdict.end":                             "of the answer; it says how the Job failed, and nothing is done because of it",
	"jobpolicy.v1.MatchPodFailurePolicyRequest.rule_names": "an engine that ignores it answers without names; the actions are the same",
	"jobpolicy.v1.ContainerExit.reason":                    "read only for Verdict.end, and for options.next_try_resources, which an engine that does not know them refuses",
	"jobpolicy.v1.ContainerExit.signal":                    "as reason",
	"jobpolicy.v1.ContainerExit.termination_message":       "as reason",
	"jobpolicy.v1.JobEnd.failures":                         "as Verdict.end",
	"jobpolicy.v1.PodFailure.reason":                       "as ContainerExit.reason",
	"jobpolicy.v1.PodFailure.deleted_before_end":           "as ContainerExit.reason",
	"jobpolicy.v1.PodFailure.never_ran":                    "as ContainerExit.reason",
	"jobpolicy.v1.PodFailure.start":                        "as ContainerExit.reason",
	"jobpolicy.v1.PodFailure.resource_step":                "read only for Verdict.end",
	"jobpolicy.v1.PodFailureFact.index":                    "as ContainerExit.reason",
	"jobpolicy.v1.ActivePod.pod_name":                      "as ContainerExit.reason",
	"jobpolicy.v1.ActivePod.last_exit":                     "as ContainerExit.reason",
	"jobpolicy.v1.ActivePod.last_exit_time":                "as ContainerExit.reason",
}

// A field of today's contract with an ignorable number would be ignored by engines
// that do not know it: it must be one that such an engine may miss, and stand in ignorableFields.
func TestIgnorableFieldsOfTodayAreListed(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	protoregistry.GlobalFiles.RangeFilesByPackage("jobpolicy.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			fields := file.Messages().Get(i).Fields()
			for j := range fields.Len() {
				if n := fields.Get(j).Number(); n >= 1000 && n <= 1999 {
					seen[fields.Get(j).FullName()] = true
				}
			}
		}
		return true
	})
	for name := range seen {
		if ignorableFields[name] == "" {
			t.Errorf("%s has an ignorable number; list it in ignorableFields with the reason", name)
		}
	}
	for name := range ignorableFields {
		if !seen[name] {
			t.Errorf("ignorableFields lists %s, which the contract does not have with an ignorable number", name)
		}
	}
}

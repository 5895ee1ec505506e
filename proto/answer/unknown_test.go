package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ignoredPlaces are those of whose unknowns the contract says that they are ignored.
var ignoredPlaces = []protoreflect.FullName{
	"jobpolicy.v1.DecideJobResponse.explanation", "jobpolicy.v1.DecideCronJobResponse.explanation",
	"jobpolicy.v1.DecideJobResponse.follow_up", "jobpolicy.v1.DecideCronJobResponse.follow_up",
	"jobpolicy.v1.DeletePod.reason", "jobpolicy.v1.DeleteJob.reason", "jobpolicy.v1.Verdict.rule",
}

// A place is a message or an enum field of a decision, at any depth.
type place struct {
	path    string // of what plant puts there
	plant   func()
	ignored bool
}

// fill sets every field that is a message, and adds the places in m to found. number is
// that of the field that plant adds to messages.
func fill(t *testing.T, m protoreflect.Message, path string, ignored bool, number protowire.Number, found *[]place) {
	t.Helper()
	*found = append(*found, place{path: fmt.Sprint(path, number), ignored: ignored, plant: func() {
		m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1))
	}})
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		at, ignored := path+string(field.Name()), ignored || slices.Contains(ignoredPlaces, field.FullName())
		switch {
		case field.IsMap():
		case field.Message() != nil && field.IsList():
			fill(t, m.Mutable(field).List().AppendMutable().Message(), at+"[0].", ignored, number, found)
		case field.Message() != nil:
			fill(t, m.Mutable(field).Message(), at+".", ignored, number, found)
		case field.Enum() != nil && field.IsList():
			*found = append(*found, place{path: at + "[0]", ignored: ignored, plant: func() {
				m.Mutable(field).List().Append(protoreflect.ValueOfEnum(9999))
			}})
		case field.Enum() != nil && field.Name() != "disposition": // TestCheck has it.
			*found = append(*found, place{path: at, ignored: ignored, plant: func() { m.Set(field, protoreflect.ValueOfEnum(9999)) }})
		}
	}
}

// either keeps the creations of a filled decision or its deletions and ends, because Check refuses both
// together: those in which path is.
func either(decision Decision, path string) {
	switch d, ok := decision.(*jobpolicyv1.DecideJobResponse); {
	case !ok:
	case strings.HasPrefix(path, "create."):
		d.Create.Count, d.Delete, d.End = 1, nil, nil
		for _, r := range d.Create.GetRaised() {
			r.Step, r.Multiplier, r.Max, r.Resource = 1, 2, "1", cmp.Or(r.GetResource(), 1)
		}
	default:
		d.Create = nil
		for _, e := range d.GetEnd() {
			e.ActiveDeadlineSeconds = 1
		}
	}
}

// Check refuses a decision with anything unknown, at any depth, by its path; but for what
// the contract lists.
func TestUnknownsAnywhereInADecision(t *testing.T) {
	decisions := map[Request]func() Decision{
		&jobpolicyv1.DecideJobRequest{Spec: &jobpolicyv1.JobSpec{
			CompletionMode: jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED, Completions: proto.Int32(1), BackoffLimitPerIndex: proto.Int32(0),
		}}: func() Decision {
			return &jobpolicyv1.DecideJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY}
		},
		&jobpolicyv1.DecideCronJobRequest{}: func() Decision {
			return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY}
		},
	}
	for request, empty := range decisions {
		for _, number := range []protowire.Number{999, 1000, 1999, 2000} {
			for at, n := 0, 1; at < n; at++ {
				var places []place
				decision := empty()
				fill(t, decision.ProtoReflect(), "", false, number, &places)
				n = len(places)
				p := places[at]
				p.plant()
				either(decision, p.path)
				ignorable := number >= 1000 && number <= 1999 && strings.HasSuffix(p.path, fmt.Sprint(number))
				err := Check(request, decision)
				switch {
				case p.ignored || ignorable:
					if err != nil {
						t.Errorf("%T, an unknown at %s: %v, want it ignored", decision, p.path, err)
					}
				case err == nil || !strings.HasPrefix(err.Error(), p.path+" "):
					t.Errorf("%T, an unknown at %s: error %v, want one that names it", decision, p.path, err)
				}
			}
		}
	}
}

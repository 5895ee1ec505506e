package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/internal/check"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// setUnknown gives a message a field of a newer contract: the varint 1.
func setUnknown(m proto.Message, number protowire.Number) {
	field := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1)
	m.ProtoReflect().SetUnknown(append(m.ProtoReflect().GetUnknown(), field...))
}

// assertUnsupported wants the request to be refused as unsupported, and the error to name the field.
func assertUnsupported(t *testing.T, change func(*request), field, says string) {
	t.Helper()
	req := validRequest(t)
	change(req)
	_, err := engine.DecideJob(req)
	var unsupported *engine.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Field != field {
		t.Fatalf("DecideJob: %v, want an UnsupportedError of %s", err, field)
	}
	if want := fmt.Sprintf("unsupported: %s: ", field); !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), says) {
		t.Errorf("error %q does not begin with %q and say %q", err, want, says)
	}
}

// A test in services/internal/policyserver checks over the wire that every place of
// every request is examined.
func TestUnknownFieldsAreUnsupported(t *testing.T) {
	within := func(message func(*request) proto.Message) func(*request) {
		return func(r *request) { setUnknown(message(r), 8191) }
	}
	cases := map[string]struct {
		change func(*request)
		field  string
	}{
		"a field of the request": {change: within(func(r *request) proto.Message { return r }), field: "8191"},
		"a field of the spec":    {change: within(func(r *request) proto.Message { return r.Spec }), field: "spec.8191"},
		"a field of a rule": {
			change: within(func(r *request) proto.Message { return r.Spec.PodFailurePolicy.Rules[1] }),
			field:  "spec.pod_failure_policy.rules[1].8191",
		},
		"a field of a rule's range": {
			change: within(func(r *request) proto.Message { return r.Spec.SuccessPolicy.Rules[0].SucceededIndexes.Ranges[1] }),
			field:  "spec.success_policy.rules[0].succeeded_indexes.ranges[1].8191",
		},
		"a field of the settings":      {change: within(func(r *request) proto.Message { return r.Settings }), field: "settings.8191"},
		"a field of a row":             {change: within(func(r *request) proto.Message { return r.UnaccountedPods[1] }), field: "unaccounted_pods[1].8191"},
		"a field of a time":            {change: within(func(r *request) proto.Message { return r.Now }), field: "now.8191"},
		"a field after ignorable ones": {change: func(r *request) { setUnknown(r.Job, 1000); setUnknown(r.Job, 999) }, field: "job.999"},
		"a field above ignorable ones": {change: func(r *request) { setUnknown(r.Job, 2000) }, field: "job.2000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { assertUnsupported(t, tc.change, tc.field, "number of an unknown field") })
	}
}

func TestUnknownValuesAreUnsupported(t *testing.T) {
	cases := map[string]struct {
		change      func(*request)
		field, says string
	}{
		"a completion mode": {
			change: func(r *request) { r.Spec.CompletionMode = 9 },
			field:  "spec.completion_mode", says: "the unknown value 9",
		},
		"a negative value": {
			change: func(r *request) { r.Spec.CompletionMode = -1 },
			field:  "spec.completion_mode", says: "the unknown value -1",
		},
		"a value in a rule": {
			change: func(r *request) { r.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Operator = 7 },
			field:  "spec.pod_failure_policy.rules[0].on_exit_codes.operator", says: "the unknown value 7",
		},
		"a phase of a row": {
			change: func(r *request) { r.UnaccountedPods[1].Phase = 6 },
			field:  "unaccounted_pods[1].phase", says: "the unknown value 6",
		},
		"how much of the explanation": {
			change: func(r *request) { r.Settings.Explain = 99 },
			field:  "settings.explain", says: "the unknown value 99",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { assertUnsupported(t, tc.change, tc.field, tc.says) })
	}
}

func TestWhatMayBeIgnoredChangesNoDecision(t *testing.T) {
	decide := func(change func(*request)) string {
		req := validRequest(t)
		req.Deferrals = nil
		change(req)
		resp, err := engine.DecideJob(req)
		if err != nil {
			t.Fatal(err)
		}
		return string(wireBytes(t, resp))
	}
	plain := decide(func(*request) {})
	for name, change := range map[string]func(*request){
		"ignorable fields": func(r *request) {
			for _, m := range []proto.Message{r, r.Job, r.Spec, r.Pods, r.UnaccountedPods[0], r.Settings} {
				setUnknown(m, 1000)
				setUnknown(m, 1999)
			}
		},
		"a step to leave for later": func(r *request) {
			r.Deferrals = []*jobpolicyv1.Deferral{{Step: 99, Until: &timestamppb.Timestamp{Seconds: 1 << 32}}}
		},
	} {
		if decide(change) != plain {
			t.Errorf("%s: another decision", name)
		}
	}
}

// The next status replaces the whole last one, so fields of a newer contract are
// copied into it.
func TestIgnorableFieldsOfTheStatusAreKept(t *testing.T) {
	req := validRequest(t)
	setUnknown(req.Status, 1000)
	resp, err := engine.DecideJob(req)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.GetStatus().ProtoReflect().GetUnknown(), req.Status.ProtoReflect().GetUnknown(); !bytes.Equal(got, want) {
		t.Errorf("unknown fields of the next status: %x, want %x", got, want)
	}
}

// The check of rows allocates nothing for each row.
func TestLookingForUnknownsAllocatesNothingPerRow(t *testing.T) {
	allocations := func(rows int) float64 {
		req := withFinished(steady(t, 10), rows)
		return testing.AllocsPerRun(10, func() {
			if err := check.Known(req); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations(10), allocations(10_000); many > few {
		t.Errorf("allocations for 10 rows: %v, for 10000 rows: %v; want the same", few, many)
	}
}

// BenchmarkKnown measures the search for unknown fields in large requests.
func BenchmarkKnown(b *testing.B) {
	for name, req := range map[string]*request{
		"settled":          steady(b, 1000),
		"finished=100000":  withFinished(steady(b, 1000), 100_000),
		"scaledown=100000": scaleDown(b, 100_000),
		"exits=4000000":    exitCodesGalore(b),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := check.Known(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

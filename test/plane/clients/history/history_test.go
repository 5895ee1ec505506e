package history

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// recorded is a recording of versions, each as YAML behind the type of its event.
func recorded(t *testing.T, versions ...string) *Recorder {
	t.Helper()
	r := &Recorder{lives: map[types.UID]*life{}, latest: time.Now()}
	for _, text := range versions {
		o := map[string]any{}
		must.Succeed(t, yaml.Unmarshal([]byte(text), &o))
		kind := watch.Modified
		if o["gone"] == true {
			kind = watch.Deleted
		}
		delete(o, "gone")
		r.see(watch.Event{Type: kind, Object: &unstructured.Unstructured{Object: o}})
	}
	return r
}

func TestLines(t *testing.T) {
	for name, tc := range map[string]struct{ versions, want []string }{
		"each change of a condition counts, however many writes it took": {
			[]string{
				`{kind: Job, metadata: {uid: a, name: a}, status: {active: 1}}`,
				`{kind: Job, metadata: {uid: a, name: a}, status: {active: 2, conditions: [{type: Suspended, status: "False", reason: JobResumed, message: m}]}}`,
				`{kind: Job, metadata: {uid: a, name: a}, status: {succeeded: 2, failed: 0, startTime: "2026-11-27T11:44:02Z", conditions: [{type: Suspended, status: "False", reason: JobResumed, message: m}, {type: Complete, status: "True", reason: R}]}}`,
			},
			[]string{"job a: Suspended=False (JobResumed: m)", "job a: Complete=True (R: )", `job a: in the end {"startTime":"TIME","succeeded":2}`},
		},
		"how far a Job got that was deleted while it ran does not count": {
			[]string{
				`{kind: Job, metadata: {uid: a, name: a}, status: {active: 2}}`,
				`{kind: Job, metadata: {uid: a, name: a, deletionTimestamp: "2026-11-27T11:44:02Z"}, status: {failed: 1}}`,
				`{kind: Job, metadata: {uid: a, name: a}, status: {failed: 1}, gone: true}`,
				`{kind: Job, metadata: {uid: b, name: a}, status: {succeeded: 1}}`,
			},
			[]string{"job a: deleted", `job a (2): in the end {"succeeded":1}`},
		},
		"a pod that is deleted before it ends is stopped": {
			[]string{
				`{kind: Job, metadata: {uid: a, name: a}}`,
				`{kind: Pod, metadata: {uid: p, name: a-bcdfg, ownerReferences: [{uid: a}], deletionTimestamp: "2026-11-27T11:44:02Z"}, status: {phase: Running}}`,
				`{kind: Pod, metadata: {uid: p, name: a-bcdfg, ownerReferences: [{uid: a}], deletionTimestamp: "2026-11-27T11:44:02Z"}, status: {phase: Failed}, gone: true}`,
				`{kind: Pod, metadata: {uid: q, name: a-bcdfh, ownerReferences: [{uid: a}], finalizers: [f]}, status: {phase: Failed}}`,
			},
			[]string{"pod of job a: Failed, with a finalizer ×1", "pod of job a: stopped ×1"},
		},
		"Jobs with generated names are lives of their own, and so is one too many": {
			[]string{
				`{kind: ScaledJob, metadata: {uid: s, name: a}, status: {conditions: [{type: Active, status: "True", reason: R, message: m}]}}`,
				`{kind: Job, metadata: {uid: a, name: a-bcdfg}, status: {succeeded: 1}}`,
				`{kind: Job, metadata: {uid: b, name: a-x7k2p}, status: {succeeded: 1}}`,
				`{kind: Pod, metadata: {uid: p, name: a-x7k2p-vprzd, ownerReferences: [{uid: b}]}, status: {phase: Succeeded}}`,
			},
			[]string{
				`job a-~: in the end {"succeeded":1}`, `job a-~ (2): in the end {"succeeded":1}`, "scaledjob a: Active=True (R: m)",
				"pod of job a-~ (2): Succeeded ×1",
			},
		},
		"an event counts once, and none about a pod": {
			[]string{
				`{kind: Event, metadata: {uid: e}, involvedObject: {kind: Job, name: a}, type: Normal, reason: R, message: "Created pod: a-bcdfg"}`,
				`{kind: Event, metadata: {uid: f}, involvedObject: {kind: Job, name: a}, type: Normal, reason: R, message: "Created pod: a-bcdfh"}`,
				`{kind: Event, metadata: {uid: g}, involvedObject: {kind: Pod, name: a-bcdfg}, type: Normal, reason: Started}`,
			},
			[]string{"event about job a: Normal R: Created pod: a-~"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, "lines", tc.want, recorded(t, tc.versions...).Lines())
		})
	}
}

func TestMostPods(t *testing.T) {
	r := recorded(
		t,
		`{kind: Job, metadata: {uid: a, name: a}}`,
		`{kind: Pod, metadata: {uid: p, name: p}, status: {phase: Running}}`,
		`{kind: Pod, metadata: {uid: q, name: q}, status: {phase: Pending}}`,
		`{kind: Pod, metadata: {uid: p, name: p}, status: {phase: Succeeded}}`,
		`{kind: Pod, metadata: {uid: q, name: q}, status: {phase: Running}, gone: true}`,
		`{kind: Pod, metadata: {uid: r, name: r}, status: {phase: Running}}`,
	)
	if got := r.MostPods(); got != 2 {
		t.Errorf("%d pods at a time, want 2", got)
	}
}

func TestCompare(t *testing.T) {
	known := Comparison{Differences: []Difference{
		{Name: "late", Scenario: regexp.MustCompile("^kueue/"), Builtin: regexp.MustCompile("Suspended")},
		{Name: "elsewhere", Scenario: regexp.MustCompile("^helm/")},
		{Name: "sometimes", Race: true},
	}}
	builtin, ours := []string{"a", "b: Suspended", "c", "d"}, []string{"a", "d", "c"}
	must.Equal(t, "a row about another client explains something", []string{"+ c", "- b: Suspended", "- c"}, sorted(known.Compare("jobset/a", builtin, ours)))
	must.Equal(t, "unused", []string{"late"}, known.Unused([]string{"jobset/a", "kueue/a"}))
	must.Equal(t, "the order counts, and the difference is known", []string{"+ c", "- c"}, sorted(known.Compare("kueue/a", builtin, ours)))
	if unused := known.Unused([]string{"kueue/a"}); len(unused) > 0 {
		t.Errorf("a difference that showed is unused: %v", unused)
	}
}

func TestADifferenceWithoutItsSignExplainsNothing(t *testing.T) {
	c := Comparison{Differences: []Difference{{Name: "lost", Sign: regexp.MustCompile("^event lost$"), Builtin: regexp.MustCompile("^(event lost|b)$")}}}
	must.Equal(t, "without the sign", []string{"- b"}, c.Compare("jobset/a", []string{"a", "b"}, []string{"a"}))
	if left := c.Compare("jobset/b", []string{"a", "b", "event lost"}, []string{"a"}); len(left) > 0 {
		t.Errorf("with the sign: %v", left)
	}
	must.Equal(t, "summary", []string{"lost: showed in 1 scenarios [jobset/b]"}, c.Summary())
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsARace(t *testing.T) {
	first := result{problem: "differs", parted: &parting{when: "after step 1", builtin: []string{"succeeded=0"}, ours: []string{"succeeded=1"}}}
	asOurs, asBefore := map[string][]string{"after step 1": {"succeeded=1"}}, map[string][]string{"after step 1": {"succeeded=0"}}
	cases := map[string]struct {
		again result
		want  bool
	}{
		"the built-in side does as ours did":   {result{shown: asOurs}, true},
		"it does as it did":                    {result{shown: asBefore}, false},
		"something else differs then":          {result{shown: asOurs, problem: "differs"}, false},
		"the replay does not get to the place": {result{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ranAsOurs(first, tc.again); got != tc.want {
				t.Errorf("ranAsOurs = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyDeliberateDifferencesAreAccepted(t *testing.T) {
	stuck := []string{
		"startTime=false completionTime=false", "uncounted: -",
		`condition 1: Suspended=True JobSuspended "Job suspended"`,
		`condition 2: SuccessCriteriaMet=True CompletionsReached "Reached"`,
	}
	completes := []string{
		"startTime=true completionTime=true", "uncounted: -",
		`condition 1: Suspended=True JobSuspended "Job suspended"`,
		`condition 2: SuccessCriteriaMet=True CompletionsReached "Reached"`,
		`condition 3: Complete=True CompletionsReached "Reached"`,
		`event: Normal Completed "Job completed"`,
	}
	waiting := []string{
		"job: present finalizers=[]", "active=0 ready=0 terminating=0 succeeded=0 failed=0", "Jobs of this name so far: 2", "pods created: 2",
	}
	running := []string{
		"job: present finalizers=[]", "active=1 ready=1 terminating=0 succeeded=0 failed=0", "Jobs of this name so far: 2",
		"pod Running tracked ready: 1", "pods created: 3",
	}
	idle := []string{`condition 1: Suspended=True JobSuspended "Job suspended"`, `event: Normal SuccessfulDelete "Deleted pod: <pod>"`}
	failing := []string{"startTime=false completionTime=false", `condition 1: FailureTarget=True BackoffLimitExceeded "x"`}
	failed := []string{
		"startTime=true completionTime=false", `condition 1: FailureTarget=True BackoffLimitExceeded "x"`,
		`condition 2: Failed=True BackoffLimitExceeded "x"`, `event: Warning BackoffLimitExceeded "x"`,
	}
	doomed := slices.Insert(slices.Clone(idle), 1, `condition 2: FailureTarget=True PodFailurePolicy "Container main failed with exit code 143 matching"`)
	cases := map[string]struct {
		builtin, ours []string
		want          string
		wantSame      bool
	}{
		"equal views":                         {completes, completes, "", true},
		"the difference on the list":          {stuck, completes, "a suspended Job finishes", true},
		"the same the other way round":        {completes, stuck, "", false},
		"a recreated Job that waits":          {waiting, running, "a recreated Job starts at once", true},
		"a recreated Job that waits on ours":  {running, waiting, "", false},
		"a first Job that waits":              {slices.Delete(slices.Clone(waiting), 2, 3), slices.Delete(slices.Clone(running), 2, 3), "", false},
		"a failure without a start time":      {failing, failed, "a suspended Job finishes", true},
		"a start time is all that differs":    {failing, append([]string{"startTime=true completionTime=false"}, failing[1:]...), "", false},
		"doomed by a pod that was deleted":    {doomed, idle, "a pod that the controller deletes fails no Job", true},
		"doomed on ours only":                 {idle, doomed, "", false},
		"doomed by a pod that a user deleted": {doomed[:2], idle[:1], "", false},
		"another difference beside it":        {stuck, append([]string{"failed=1"}, completes...), "a suspended Job finishes", false},
		"a line more on ours":                 {completes, append([]string{"failed=1"}, completes...), "", false},
		"a line less on ours":                 {completes, completes[1:], "", false},
		"the same lines in a different order": {[]string{"a", "b"}, []string{"b", "a"}, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names, same := alikeButFor(tc.builtin, tc.ours)
			if got := strings.Join(names, ","); got != tc.want || same != tc.wantSame {
				t.Errorf("alikeButFor = %q, %t; want %q, %t", got, same, tc.want, tc.wantSame)
			}
		})
	}
}

func TestTheAuditCountsWritesAndKeepsRefusals(t *testing.T) {
	a, args, err := newAudit(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if policy := strings.TrimPrefix(args[0], "--audit-policy-file="); filepath.Base(policy) == policy {
		t.Errorf("the policy is in %q, want a whole path", policy)
	}
	lines := `{"objectRef":{"namespace":"c1"},"responseStatus":{"code":200}}
{"objectRef":{"namespace":"c1"},"responseStatus":{"code":422,"message":"no"}}
{"objectRef":{"namespace":"c2"},"responseStatus":{"code":409,"message":"again"}}
{"objectRef":{"namespace":"c1"},"respo`
	rest := `nseStatus":{"code":422,"message":"never"}}
`
	for _, tc := range []struct {
		written string
		want    []string
	}{{"", nil}, {lines, []string{"no"}}, {lines + rest, []string{"no", "never"}}} {
		if tc.written != "" {
			if err := os.WriteFile(a.log, []byte(tc.written), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := a.refusals("c1")
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("refusals (-want +got): %v\n%s", err, diff)
		}
	}
	if diff := cmp.Diff(map[int]int{200: 1, 409: 1, 422: 2}, a.counts()); diff != "" {
		t.Errorf("writes by answer (-want +got):\n%s", diff)
	}
}

func TestEditsArePatches(t *testing.T) {
	cases := map[string]string{
		"suspend":                          `{"spec":{"suspend":true}}`,
		"parallelism 3":                    `{"spec":{"parallelism":3}}`,
		"try edit managedBy example.com/x": `{"spec":{"managedBy":"example.com/x"}}`,
		"edit activeDeadlineSeconds null":  `{"spec":{"activeDeadlineSeconds":null}}`,
		"template a=b":                     `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
		"cpu 1":                            `{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}}}`,
		"unfinalizer example.com/x":        `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/x"]}}`,
	}
	for line, want := range cases {
		t.Run(line, func(t *testing.T) {
			st, err := parseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			got, err := st.patch()
			if got != want || err != nil {
				t.Errorf("patch = %s, %v; want %s", got, err, want)
			}
		})
	}
	for _, line := range []string{"affinity a", "toleration a", "gate a", "nodeSelector a=b", "annotate a=b", "image a", "label a=b", "resize 2"} {
		st, err := parseStep(line)
		if err != nil {
			t.Fatal(err)
		}
		if patch, err := st.patch(); err != nil || !json.Valid([]byte(patch)) {
			t.Errorf("%s: the patch %s is no JSON: %v", line, patch, err)
		}
	}
	if _, err := (step{verb: "dance"}).patch(); err == nil {
		t.Error("a step that does not exist was taken")
	}
}

func TestShrunkCasesCanBeReplayed(t *testing.T) {
	c := &Case{Name: "x", Spec: newSpec(indexed(2), perIndex(0), maxFailed(1), withSidecar), Steps: []string{"suspend", "resume"}}
	simpler := c.simpler()
	if len(simpler) != 5 {
		t.Fatalf("%d simpler cases, want one without each of 2 steps, 2 fields and the init containers", len(simpler))
	}
	for _, shrunk := range simpler {
		spec, err := json.Marshal(shrunk.Spec)
		if err != nil {
			t.Fatal(err)
		}
		replayed := &Case{Name: "x"}
		if err := replaySteps(replayed, strings.Join(shrunk.Steps, "; "), string(spec)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(shrunk.String(), replayed.String()); diff != "" {
			t.Errorf("replayed case (-want +got):\n%s", diff)
		}
		if shrunk.String() == c.String() {
			t.Errorf("not simpler: %s", shrunk)
		}
	}
}

func TestScriptsAreWellFormed(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Written() {
		if names[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		names[c.Name] = true
		for _, line := range c.Steps {
			if _, err := parseLine(line); err != nil {
				t.Errorf("case %s: %v", c.Name, err)
			}
		}
	}
}

func TestSelectorsChoose(t *testing.T) {
	handles := []handle{{index: 0}, {index: 1}, {index: 4}}
	cases := map[string][]int{"*": {0, 1, 4}, "2": {0, 1}, "9": {0, 1, 4}, "#4,0": {0, 4}, "#3": nil}
	for word, want := range cases {
		t.Run(word, func(t *testing.T) {
			s, err := parseSelector(word)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, h := range s.choose(handles) {
				got = append(got, h.index)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("chosen indexes (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := parseSelector("#x"); err == nil {
		t.Error("an index that is no number was taken")
	}
}

func TestASeedMakesTheSameCase(t *testing.T) {
	for seed := range uint64(200) {
		if diff := cmp.Diff(Generated(seed).String(), Generated(seed).String()); diff != "" {
			t.Errorf("seed %d:\n%s", seed, diff)
		}
	}
}

func TestGeneratedCasesReachEveryFeature(t *testing.T) {
	reached := map[string]bool{}
	for seed := range uint64(2000) {
		for name, has := range Generated(seed).features() {
			reached[name] = reached[name] || has
		}
	}
	// What generated cases leave to the written ones.
	for _, name := range []string{"mode: NonIndexed, neither", "template: schedulingGates", "restarts of the controller", "several steps at once"} {
		delete(reached, name)
	}
	for name, has := range reached {
		if !has {
			t.Errorf("no generated case has %s", name)
		}
	}
}

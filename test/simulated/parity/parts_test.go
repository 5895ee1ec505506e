package parity

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/services/differences"
	"jobpolicy.dev/test/simulated/parity/virtual"
)

func TestWhatIsNotCompared(t *testing.T) {
	v := view{
		lines:  []string{"job: absent", "pod Failed gone: 1", "pod Running tracked: 1", "pod Succeeded: 1", "pods created: 3"},
		events: []string{`event: Normal Completed "Job completed"`, `event: Normal SuccessfulCreate "Created pod: <pod>"`},
	}
	all := append(append([]string{}, v.lines...), v.events...)
	cases := map[string]struct {
		e    exemption
		told int
		want []string
	}{
		"nothing is":                         {exemption{}, 3, all},
		"events that the recorder may drop":  {exemption{}, maxEvents, v.lines},
		"events that died with a controller": {exemption{restarts: true}, 3, v.lines},
		"what happened to a Job that goes":   {exemption{loose: true}, 3, []string{"job: absent", "pod Running tracked: 1", "pod Succeeded: 1"}},
		"pods that became orphans meanwhile": {exemption{loose: true, orphaning: true}, 3, []string{"job: absent", "pod Running tracked: 1"}},
		"that it finished before it went":    {exemption{deleting: true}, 3, append(append([]string{}, v.lines...), v.events[1])},
		"events after the pods are orphans":  {exemption{orphaning: true}, 3, v.lines},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, "lines", tc.want, tc.e.comparable(v, tc.told))
		})
	}
}

func TestWhatRestartsMakeAMatterOfChance(t *testing.T) {
	const (
		pods, indexes             = "active=0 ready=0 terminating=0 succeeded=1 failed=1", `completedIndexes="1" failedIndexes=0`
		hiddenPods, hiddenIndexes = "active=0 ready=0 terminating=0 succeeded=1 failed=?", `completedIndexes="1" failedIndexes=?`
	)
	cases := map[string]struct{ condition, pods, indexes string }{
		"a Job that succeeds":                    {`condition 1: SuccessCriteriaMet=True SuccessPolicy "x"`, hiddenPods, hiddenIndexes},
		"a Job that fails while pods run":        {`condition 1: FailureTarget=True DeadlineExceeded "x"`, pods, hiddenIndexes},
		"a Job that fails when no pod can run":   {`condition 1: FailureTarget=True FailedIndexes "x"`, pods, indexes},
		"a Job of which it is not decided yet":   {`condition 1: Suspended=True JobSuspended "x"`, pods, indexes},
		"a failure policy that stops other pods": {`condition 1: FailureTarget=True PodFailurePolicy "x"`, pods, hiddenIndexes},
	}
	for name, tc := range cases {
		want := []string{tc.pods, tc.indexes, tc.condition}
		if diff := cmp.Diff(want, withoutFailures([]string{pods, indexes, tc.condition})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
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
	idle := []string{`condition 1: Suspended=True JobSuspended "Job suspended"`, `event: Normal SuccessfulDelete "Deleted pod: <pod>"`}
	atOnce := []string{
		"startTime=true completionTime=true", "uncounted: -",
		`condition 1: SuccessCriteriaMet=True CompletionsReached "Reached"`,
		`condition 2: Complete=True CompletionsReached "Reached"`,
		`event: Normal Completed "Job completed"`,
	}
	failing := []string{"startTime=false completionTime=false", `condition 1: FailureTarget=True BackoffLimitExceeded "x"`}
	failed := []string{
		"startTime=true completionTime=false", `condition 1: FailureTarget=True BackoffLimitExceeded "x"`,
		`condition 2: Failed=True BackoffLimitExceeded "x"`, `event: Warning BackoffLimitExceeded "x"`,
	}
	doomed := slices.Insert(slices.Clone(idle), 1, `condition 2: FailureTarget=True PodFailurePolicy "Container main failed with exit code 143 matching"`)
	told := slices.Insert(slices.Clone(failed), 3, `event: Normal Suspended "Job suspended"`)
	strayed := []string{"job: deleting finalizers=[foregroundDeletion]", "pod Failed deleting tracked: 1"}
	goes := []string{"job: absent", "pod Running ready orphan: 1"}
	leaves := []string{"job: deleting finalizers=[example.com/mine]", "active=0 ready=0 terminating=0 succeeded=0 failed=?", "pod Failed gone: 1"}
	leavesFailed := append(slices.Clone(leaves), failed[1:]...)
	checkDifferences(t, map[string]differenceCase{
		"equal views":                         {builtin: completes, ours: completes, wantSame: true},
		"the difference on the list":          {builtin: stuck, ours: completes, want: suspendedFinishes, wantSame: true},
		"the same the other way round":        {builtin: completes, ours: stuck},
		"a Job that ends before it suspends":  {builtin: stuck, ours: atOnce, want: suspendedFinishes, wantSame: true},
		"a Job that suspends on ours only":    {builtin: atOnce, ours: completes},
		"a failure without a start time":      {builtin: failing, ours: failed, want: suspendedFinishes, wantSame: true},
		"a start time is all that differs":    {builtin: failing, ours: append([]string{"startTime=true completionTime=false"}, failing[1:]...)},
		"doomed by a pod that was deleted":    {builtin: doomed, ours: idle, want: "own-deletion", wantSame: true},
		"doomed on ours only":                 {builtin: idle, ours: doomed},
		"doomed by a pod that a user deleted": {builtin: doomed[:2], ours: idle[:1]},
		"a pod that is no longer selected":    {builtin: strayed, ours: goes, want: "no-longer-selected", wantSame: true},
		"one that holds up ours":              {builtin: goes, ours: strayed},
		"failed because it is deleted":        {builtin: leavesFailed, ours: leaves, want: "deleted-with-its-job", wantSame: true},
		"failed on ours only":                 {builtin: leaves, ours: leavesFailed},
		"failed without being deleted":        {builtin: leavesFailed[1:], ours: leaves[1:]},
		"an event of a refused status":        {builtin: told, ours: failed, want: "unwritten-suspension", wantSame: true},
		"such an event on ours":               {builtin: failed, ours: told},
		"an event that the status confirms":   {builtin: append([]string{idle[0]}, told...), ours: append([]string{idle[0]}, failed...)},
		"another difference beside it":        {builtin: stuck, ours: append([]string{"failed=1"}, completes...), want: suspendedFinishes},
		"a line more on ours":                 {builtin: completes, ours: append([]string{"failed=1"}, completes...)},
		"a line less on ours":                 {builtin: completes, ours: completes[1:]},
		"the same lines in a different order": {builtin: []string{"a", "b"}, ours: []string{"b", "a"}},
	})
}

// The start time of a Job that was resumed may differ while its last pods end, however
// it ends.
func TestAResumedJobWhoseEndIsDecided(t *testing.T) {
	about := func(started, interim string) []string {
		return []string{
			"startTime=" + started + " completionTime=false", `condition 1: Suspended=True JobSuspended "Job suspended"`,
			"condition 2: " + interim, "pod Running deleting ready: 1",
		}
	}
	const (
		willFail    = `FailureTarget=True BackoffLimitExceeded "x"`
		willSucceed = `SuccessCriteriaMet=True CompletionsReached "x"`
		resumed     = "resumed-while-ending"
	)
	checkDifferences(t, map[string]differenceCase{
		"a resumed Job that is about to fail": {builtin: about("false", willFail), ours: about("true", willFail), want: resumed, wantSame: true},
		"one that is about to succeed":        {builtin: about("false", willSucceed), ours: about("true", willSucceed), want: resumed, wantSame: true},
		"one whose end is not decided":        {builtin: about("false", `Other=True x "x"`), ours: about("true", `Other=True x "x"`)},
		"its start time on the other side":    {builtin: about("true", willFail), ours: about("false", willFail)},
	})
}

// A differenceCase is what both sides show, and the differences from the list that explain it.
type differenceCase struct {
	builtin, ours []string
	want          string
	wantSame      bool
}

func checkDifferences(t *testing.T, cases map[string]differenceCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names, same := alikeButFor(tc.builtin, tc.ours)
			if got := strings.Join(names, ","); got != tc.want || same != tc.wantSame {
				t.Errorf("alikeButFor = %q, %t; want %q, %t", got, same, tc.want, tc.wantSame)
			}
		})
	}
}

// Each difference that is tolerated has its row, and each row that says that these tests show it is
// tolerated.
func TestToleratedDifferencesHaveRows(t *testing.T) {
	tolerated := []string{disruptionsDoNotDelay}
	for _, d := range Differences() {
		tolerated = append(tolerated, d.Row)
	}
	if err := differences.CheckTolerated("test/simulated/parity", tolerated); err != nil {
		t.Error(err)
	}
}

func TestSidesAreComparedUpToWhereTheyPart(t *testing.T) {
	transcriptOf := func(lines ...string) *transcript {
		tr := &transcript{shapes: []string{"shape"}}
		for _, line := range lines {
			tr.moments = append(tr.moments, moment{view: view{lines: []string{line}}})
		}
		return tr
	}
	broken, other, refused := transcriptOf("a", "b"), transcriptOf("a", "b"), transcriptOf("a", "b")
	broken.err = errUnfit
	other.shapes = nil
	refused.moments[1].refused = true
	cases := map[string]struct {
		ours   *transcript
		wantAt int // -1: they agree.
	}{
		"they agree":                     {transcriptOf("a", "b"), -1},
		"they differ at once":            {transcriptOf("x", "b"), 0},
		"they differ later":              {transcriptOf("a", "x"), 1},
		"ours comes to an end before":    {transcriptOf("a"), 1},
		"ours breaks off after the last": {broken, 2},
		"only the shapes differ":         {other, 2},
		"a step is refused by one":       {refused, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := -1
			if _, parted := (&Case{}).compare(transcriptOf("a", "b"), tc.ours); parted != nil {
				at = parted.at
			}
			if at != tc.wantAt {
				t.Errorf("the sides part at %d, want %d", at, tc.wantAt)
			}
		})
	}
}

// If one side has left more orphans than the other by chance, later steps may be about other pods.
func TestStepsAfterDifferentOrphansAreNotCompared(t *testing.T) {
	after := func(orphans, active string) *transcript {
		return &transcript{moments: []moment{
			{line: "succeed 1 & delete Orphan & recreate", view: view{lines: []string{"pod Running ready: " + orphans}}},
			{line: "succeed 1", view: view{lines: []string{"active=" + active, "pod Running ready: " + orphans}}},
		}}
	}
	if _, parted := (&Case{}).compare(after("1", "2"), after("2", "3")); parted != nil {
		t.Errorf("the sides part at %d although their orphans differ", parted.at)
	}
	if _, parted := (&Case{}).compare(after("1", "2"), after("1", "3")); parted == nil || parted.at != 1 {
		t.Errorf("with equal orphans, the sides part at %+v, want 1", parted)
	}
}

// deletesOwnPods is a case in which both sides delete two pods, and a rule matches the exit code of
// pods that were told to stop. How its events are spread follows from the seed.
func deletesOwnPods() *Case {
	rule := onExitOf("main", onExit("FailJob", 137))
	rule.OnExitCodes.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
	return &Case{Name: "deletes-own-pods", Spec: newSpec(parallelism(4), failurePolicy(rule)), Steps: []string{"parallelism 2", "fail 1 exit=1 container=main"}, seed: 27}
}

// The built-in controller fails this Job because of a pod that it deleted itself, if
// it sees the end of one such pod before that of the other.
func TestAPodThatTheControllerDeletesIsFoundInItsRace(t *testing.T) {
	c := deletesOwnPods()
	ours := player{seed: c.seed}.play(t, c)
	builtin := player{builtin: true, seed: c.seed, late: virtual.Latenesses{"pods": {Apart: batch}}}.play(t, c)
	known, parted := c.compare(builtin, ours)
	if want := []string{"own-deletion"}; parted != nil || !slices.Equal(known, want) {
		t.Errorf("compare() = %q, %+v; want %q", known, parted, want)
	}
}

func TestOnlyPodsThatHaveEndedMayBeThereStillAfterAVerdict(t *testing.T) {
	verdict := `condition 1: FailureTarget=True BackoffLimitExceeded "x"`
	kept := []string{verdict, "pod Failed: 2", "pod Succeeded gone: 1", "pods created: 3"}
	deleted := []string{verdict, "pod Failed gone: 1", "pod Failed: 1", "pod Succeeded: 1", "pods created: 3", `event: Normal SuccessfulDelete "Deleted pod: <pod>"`}
	cases := map[string]struct {
		builtin, ours []string
		want          bool
	}{
		"one was deleted":        {deleted, kept, true},
		"there is no verdict":    {deleted[1:], kept[1:], false},
		"another one has failed": {deleted, []string{verdict, "pod Failed: 3", "pods created: 3"}, false},
		"one is running":         {deleted, append(slices.Clone(kept), "pod Running: 1"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := verdictFirst(tc.builtin, tc.ours); got != tc.want {
				t.Errorf("verdictFirst() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyAPodOfOthersMayBeDeletedBeforeTheEnd(t *testing.T) {
	end := []string{`condition 2: Complete=True CompletionsReached "x"`, "pod Succeeded: 1"}
	orphan := append(slices.Clone(end), "pod Running ready orphan: 1")
	adopted := append(slices.Clone(end), "pod Failed gone: 1", `event: Normal SuccessfulDelete "Deleted pod: <pod>"`)
	ended := append([]string{"active=0 ready=0 terminating=0 succeeded=1 failed=0", "startTime=true completionTime=true"}, orphan...)
	waits := []string{
		"active=0 ready=0 terminating=1 succeeded=1 failed=0", "startTime=true completionTime=false", "pod Succeeded: 1", "pod Running deleting ready: 1", adopted[3],
	}
	cases := map[string]struct {
		builtin, ours []string
		want          bool
	}{
		"it was deleted and is held":         {ended, waits, true},
		"it is not deleted":                  {ended, append(slices.Clone(waits[:3]), "pod Running ready: 1", adopted[3]), false},
		"two are held":                       {ended, append([]string{"active=0 ready=0 terminating=2 succeeded=1 failed=0"}, waits[1:]...), false},
		"one of its pods was gone before":    {append(slices.Clone(orphan), "pod Failed gone: 1"), append(slices.Clone(end), "pod Failed gone: 2", adopted[3]), true},
		"two were deleted":                   {orphan, append(slices.Clone(end), "pod Failed gone: 2", adopted[3]), false},
		"an orphan was adopted and deleted":  {orphan, adopted, true},
		"another pod was deleted before":     {append(slices.Clone(orphan), adopted[3]), adopted, true},
		"nothing was deleted":                {orphan, adopted[:3], false},
		"the Job has not finished":           {orphan[1:], adopted[1:], false},
		"it was adopted and runs":            {orphan, append(slices.Clone(end), "pod Running tracked ready: 1"), false},
		"a pod made for the Job was deleted": {append(slices.Clone(end), "pod Running ready: 1"), adopted, true},
		"a pod of the Job was deleted":       {append(slices.Clone(end), "pod Running tracked: 1"), adopted, false},
		"another pod differs, too":           {append(slices.Clone(orphan), "pod Pending: 1"), adopted, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := latePod(tc.builtin, tc.ours); got != tc.want {
				t.Errorf("latePod() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestARaceIsWhatTheBuiltinSideShowsIfItSeesThingsLater(t *testing.T) {
	c := deletesOwnPods()
	late := player{builtin: true, seed: c.seed, late: virtual.Latenesses{"pods": {Apart: batch}}}.play(t, c)
	shown := late.moments[1].view.lines
	if known, explained := c.explainedByRace(t, &parting{at: 1, ours: shown}, late); !explained || known != nil {
		t.Error("what the built-in side shows if it sees pods one by one is no race")
	}
	late.moments[1].view.lines = append(slices.Clone(shown), "something else")
	if _, explained := c.explainedByRace(t, &parting{at: 1, ours: late.moments[1].view.lines}, late); explained {
		t.Error("what the built-in side never shows is taken for a race")
	}
}

// Here ours creates a pod between two steps of one line, and deletes it before the node has started it.
func TestAPodThatTheNodeHasNotStartedIsPartOfARace(t *testing.T) {
	c := &Case{
		Name:  "deadline-in-the-midst",
		Spec:  newSpec(indexed(4), parallelism(2), backoffLimit(2), failurePolicy(onExit("FailJob", 137)), replaceFailed),
		Steps: []string{"succeed #0 & activeDeadlineSeconds 1"}, seed: 18537, generated: true,
	}
	c.Spec.Template.Spec.Containers = c.Spec.Template.Spec.Containers[:1]
	if r := run(t, c); r.problem != "" || r.race == "" {
		t.Errorf("problem %q, race %q; want no problem and a race", r.problem, r.race)
	}
	ours := player{seed: c.seed}.play(t, c)
	if _, explained := c.explainedApart(t, player{builtin: true, seed: c.seed}, ours); explained {
		t.Error("the built-in side shows the same although the node starts the pod: the case proves nothing")
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
			must.Succeed(t, err)
			got, err := st.patch()
			if got != want || err != nil {
				t.Errorf("patch = %s, %v; want %s", got, err, want)
			}
		})
	}
	for _, line := range []string{"affinity a", "toleration a", "gate a", "nodeSelector a=b", "annotate a=b", "image a", "label a=b", "resize 2"} {
		st, err := parseStep(line)
		must.Succeed(t, err)
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
	if len(simpler) != 9 {
		t.Fatalf("%d simpler cases, want one without each of 2 steps, 2 fields and 3 containers, and 2 with smaller numbers", len(simpler))
	}
	for _, shrunk := range simpler {
		spec, err := json.Marshal(shrunk.Spec)
		must.Succeed(t, err)
		replayed := &Case{Name: "x"}
		must.Succeed(t, replaySteps(replayed, strings.Join(shrunk.Steps, "; "), string(spec)))
		must.Equal(t, "replayed case", shrunk.String(), replayed.String())
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
			must.Succeed(t, err)
			var got []int
			for _, h := range s.choose(handles) {
				got = append(got, h.index)
			}
			must.Equal(t, "chosen indexes", want, got)
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
	// Only the written cases cover these.
	for _, name := range []string{"many pods", "schedulingGates", "restarts of the controller", "several steps at once"} {
		delete(reached, name)
	}
	for name, has := range reached {
		if !has {
			t.Errorf("no generated case has %s", name)
		}
	}
}

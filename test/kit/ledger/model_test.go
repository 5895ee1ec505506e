package ledger

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
)

// A transition is one of the model's, and what a Book holds it to.
type transition struct {
	step Step
	// text is the transition in the model, from its condition to the name of its step.
	text   string
	guards []Kind
}

// Each guard of the table stands for a condition of a transition, or for an assertion in it. Where the model asks what the view of an executor
// shows (ready, runs, excess, mayEnd), the guard asks what was ever stored.
var transitions = []transition{
	{Record, `:: has((nuS | nuF) & ~(uS | uF), i) -> STEP(record)`, []Kind{RecordedTwice, RecordedAgain}},
	{Count, `:: has((uS | uF) & ~(nuS | nuF), i) -> STEP(count)`, []Kind{CountedHolder, WrongFailed, WrongSucceeded}},
	{CompleteIndex, `STEP(completeIndex) assert((cidx & ~ncidx) == 0 || breaks_I2)`, []Kind{WrongIndexes, IndexTwice, IndexGone}},
	{Declare, `STEP(declare) assert(interim == 0 || interim == ninterim || breaks_I4)`, []Kind{ConditionGone, BothEnds}},
	{Finish, `:: nfinal != final -> STEP(finish)`, []Kind{NoInterim, EndWithPods, EndBeforePod}},
	{Release, `has(X.release, p) -> STEP(release) releasePod(e, p)`, []Kind{ReleasedTooSoon}},
	{
		ReleaseRunning,
		`ready(e) && runs(e) && has(X.working & X.fin, p) && excess(e) -> if :: d_step { asSeen(e, p) -> STEP(releaseRunning)`,
		[]Kind{ReleasedWanted},
	},
	{ReleaseOrphan, `has(X.ex & X.fin & (X.own0 | X.own1), p) && orphan(e, p) -> STEP(releaseOrphan)`, []Kind{ReleasedForeign}},
	{Adopt, `:: adoptable(e, p) -> STEP(adopt)`, []Kind{AdoptedOwned, AdoptedUnheld}},
	{CreatePod, `inline born(e, p) { STEP(createPod)`, []Kind{NeverAJob, CreatedUnheld}},
	// A pod that is released because it is one too many, or because its Job is suspended.
	{
		DeletePod, `ready(e) && runs(e) && has(X.working & ~X.fin, p) && excess(e) -> if :: !differs(e, p) -> STEP(deletePod)`,
		[]Kind{DeletedWanted, DeletedForeign},
	},
	{
		DeletePod, `ready(e) && X.final == 0 && !X.jdel && mayEnd(e) && has(X.working, p) -> STEP(deletePod) assert(interim != 0 || !jobOf(p) || breaks_order)`,
		[]Kind{DeletedHeld},
	},
	// In the model, no Job deletes finished pods.
	{DeletePod, `ready(e) && X.final != 0 && has(X.working, p) -> if :: !differs(e, p) -> STEP(deletePod)`, []Kind{DeletedEnded, DeletedUncounted}},
}

// Each transition of the model that is a write is a step of the table with its guards, and the other way round. Who changes the condition of a
// transition looks at the guards, too.
func TestEachTransitionIsAStepWithItsGuards(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../proof/ledger.pml")
	must.Succeed(t, err)
	model := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\\\n", " ")), " ")
	want, got := map[Step][]Kind{}, map[Step][]Kind{}
	for _, tr := range transitions {
		if n := strings.Count(model, tr.text); n != 1 || !strings.Contains(tr.text, "STEP("+string(tr.step)+")") {
			t.Errorf("%s: this stands %d times in the model: %s", tr.step, n, tr.text)
		}
		got[tr.step] = append(got[tr.step], tr.guards...)
	}
	for _, r := range slices.Concat(ofStatus, ofPod) {
		for _, g := range r.guards {
			want[r.step] = append(want[r.step], g.kind)
		}
	}
	for _, kinds := range []map[Step][]Kind{want, got} {
		for _, of := range kinds {
			slices.Sort(of)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("guards (-table +transitions):\n%s", diff)
	}
	if n := len(regexp.MustCompile(`STEP\([a-z]\w+\)`).FindAllString(strings.ReplaceAll(model, "#define STEP(name)", ""), -1)); n != len(transitions) {
		t.Errorf("the model has %d transitions that are steps, the table of this test %d", n, len(transitions))
	}
}

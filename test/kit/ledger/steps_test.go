package ledger

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The model of the ledger has the steps that a Book knows, and checks the invariants that a Book holds them to.
func TestTheModelHasTheseSteps(t *testing.T) {
	t.Parallel()
	model, err := os.ReadFile("../../../proof/ledger.pml")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, step := range Steps {
		want = append(want, string(step))
	}
	if diff := cmp.Diff(sorted(want), namesIn(model, `(?m)(?:->|^\t) ?STEP\((\w+)\)`)); diff != "" {
		t.Errorf("steps (-Book +model):\n%s", diff)
	}
	checked := append(namesIn(model, `\|\| breaks_(I\d+)\)`), "I9") // The model has no other controllers.
	for _, r := range slices.Concat(ofStatus, ofPod) {
		if !slices.Contains(Steps, r.step) {
			t.Errorf("step %q is none of the model", r.step)
		}
		for _, g := range r.guards {
			if !slices.Contains(checked, g.rule) {
				t.Errorf("%q is about rule %s; the model checks %v", g.kind, g.rule, checked)
			}
		}
	}
}

// namesIn returns what the pattern's group matches, sorted, each once.
func namesIn(text []byte, pattern string) (names []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	return sorted(names)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

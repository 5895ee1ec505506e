package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
)

// A leftSpec is why specs do not run. Their texts begin with its prefix.
type leftSpec struct{ prefix, reason string }

// divide divides all specs into those that run and those that do not, with the reason. A spec of which neither list speaks, or
// both, is an error, and so is a line of a list that no spec matches any more.
func divide(all, runs []string, leaves []leftSpec) (run, left []string, err error) {
	used := map[string]bool{}
	for _, text := range all {
		var found []string
		for _, prefix := range runs {
			if strings.HasPrefix(text, prefix) {
				found, run = append(found, prefix), append(run, text)
			}
		}
		for _, l := range leaves {
			if strings.HasPrefix(text, l.prefix) {
				found, left = append(found, l.prefix), append(left, text+": "+l.reason)
			}
		}
		if len(found) != 1 {
			return nil, nil, fmt.Errorf("spec %q: expected that it is said to run or to be left out, once; found %q", text, found)
		}
		used[found[0]] = true
	}
	for _, l := range leaves {
		runs = append(slices.Clip(runs), l.prefix)
	}
	for _, prefix := range runs {
		if !used[prefix] {
			return nil, nil, fmt.Errorf("no spec begins with %q", prefix)
		}
	}
	return run, left, nil
}

func TestSpecsRunOrAreLeftOut(t *testing.T) {
	runs, leaves := []string{"Jobs "}, []leftSpec{{"Pods ", "no Job"}}
	run, left, err := divide([]string{"Pods wait", "Jobs run", "Jobs end"}, runs, leaves)
	must.Succeed(t, err)
	if diff := cmp.Diff([][]string{{"Jobs run", "Jobs end"}, {"Pods wait: no Job"}}, [][]string{run, left}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, texts := range map[string][]string{
		"a spec of which no list speaks":     {"Pods wait", "Jobs run", "Queues wait"},
		"a line of which there is no spec":   {"Pods wait"},
		"a reason of which there is no spec": {"Jobs run"},
	} {
		if _, _, err := divide(texts, runs, leaves); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := divide([]string{"Pods wait", "Jobs run"}, append(runs, "Pods wait"), leaves); err == nil {
		t.Error("a spec of which both lists speak: no error")
	}
}

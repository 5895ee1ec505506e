package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
	cases := map[string]struct {
		builtin, ours []string
		want          string
		wantSame      bool
	}{
		"equal views":                         {completes, completes, "", true},
		"the difference on the list":          {stuck, completes, "a suspended Job completes", true},
		"the same the other way round":        {completes, stuck, "", false},
		"another difference beside it":        {stuck, append([]string{"failed=1"}, completes...), "a suspended Job completes", false},
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

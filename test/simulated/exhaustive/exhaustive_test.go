package exhaustive

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var statesFlag = flag.Int("exhaustive.states", 250_000, "how many states to explore, of all Scopes together; make exhaustive explores more")

// TestEveryOrderOfSteps explores the Scopes. What one needs less than its share of the states is left for the later ones.
func TestEveryOrderOfSteps(t *testing.T) {
	var all Result
	for i := range Scopes {
		s := &Scopes[i]
		t.Run(s.Name, func(t *testing.T) {
			x := Explorer{Limit: (*statesFlag - all.States) / (len(Scopes) - i), Rest: 64, Tell: func(r Result) { fmt.Fprintln(os.Stderr, row(s, r)) }}
			r := x.Explore(s)
			t.Log(row(s, r))
			if len(r.Problems) > 0 {
				t.Errorf("%s\n\n%s", strings.Join(r.Problems, "\n"), strings.Join(r.History, "\n"))
			}
			all.States, all.Steps, all.Rests, all.Took = all.States+r.States, all.Steps+r.Steps, all.Rests+r.Rests, all.Took+r.Took
		})
	}
	t.Log(row(&Scope{Name: "together"}, all))
}

func row(s *Scope, r Result) string {
	bound := ""
	if r.All {
		bound = ", all that there are"
	}
	return fmt.Sprintf("%-48s %9d states%s, %d steps, at most %d in a row, %d followed to rest, in %v, %.0f a second",
		s.Name, r.States, bound, r.Steps, r.Deepest, r.Rests, r.Took.Round(time.Second/10), float64(r.States)/r.Took.Seconds())
}

// Each planted defect is found within so many states. Without it, nothing is found there.
func TestPlantedDefectsAreFound(t *testing.T) {
	t.Parallel()
	two := Scope{Pods: 2, Executors: 2, Parallelism: 2, Completions: 2, Running: true}
	one := Scope{Pods: 2, Executors: 1, Parallelism: 1, Completions: 1, Faults: Faults{Losses: 1}}
	cases := map[Plant]struct {
		scope  Scope
		within int
		breaks string
	}{
		NoFence:               {two, 100_000, "I2: "},
		ReleaseBeforeStatus:   {one, 100, "I1: "},
		LostReleaseIsDone:     {one, 10_000, "I2: "},
		LostCreationForgotten: {one, 10_000, "I6: "},
		NothingIsReleased:     {one, 100, "liveness: "},
		StatusWithoutVersion:  {two, 10_000, "I"},
	}
	for plant, tc := range cases {
		t.Run(string(plant), func(t *testing.T) {
			t.Parallel()
			for _, tc.scope.Plant = range []Plant{"", plant} {
				x := Explorer{Limit: tc.within, Rest: 10}
				r := x.Explore(&tc.scope)
				found := strings.Join(r.Problems, "\n")
				if planted := tc.scope.Plant != ""; planted != strings.HasPrefix(found, tc.breaks) || !planted && found != "" {
					t.Errorf("with %q found %q", tc.scope.Plant, found)
				}
				t.Logf("%q: %d states, %d steps lead to: %s", tc.scope.Plant, r.States, len(x.path), found)
			}
		})
	}
}

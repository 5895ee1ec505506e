package simulate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A play ends, gives the same result each time and does not change the spec. Its status
// counts what its pods did.
func TestPlays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sc := drawScenario(t)
		before := proto.CloneOf(sc.Spec)
		r, err := simulate.Play(sc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, sc.Spec, protocmp.Transform()); diff != "" {
			t.Errorf("the play changed the spec:\n%s", diff)
		}
		again, err := simulate.Play(sc)
		if err != nil || story(r) != story(again) {
			t.Errorf("the second play differs (error %v):\n%s", err, cmp.Diff(story(r), story(again)))
		}
		checkResult(t, r)
		checkMoments(t, r)
	})
}

// Each moment is later than the one before it, and the last one has the final status.
func checkMoments(t *rapid.T, r *simulate.Result) {
	decisions := 0
	for i, m := range r.Moments {
		decisions += len(m.Explanations)
		if i > 0 && m.At < r.Moments[i-1].At {
			t.Errorf("the moment at %s comes after the one at %s", m.At, r.Moments[i-1].At)
		}
	}
	if decisions != r.Decisions {
		t.Errorf("the moments have %d decisions, the play %d", decisions, r.Decisions)
	}
	if diff := cmp.Diff(r.Status, r.Moments[len(r.Moments)-1].Status, protocmp.Transform()); diff != "" {
		t.Errorf("the last moment's status (-final +last):\n%s", diff)
	}
}

func drawScenario(t *rapid.T) simulate.Scenario {
	n := rapid.Int32Range(0, 8).Draw(t, "completions")
	s := &jobpolicyv1.JobSpec{
		Parallelism: rapid.Int32Range(1, 5).Draw(t, "parallelism"), Completions: proto.Int32(n),
		BackoffLimit:  rapid.Int32Range(0, 4).Draw(t, "backoffLimit"),
		RestartPolicy: rapid.SampledFrom([]jobpolicyv1.RestartPolicy{never, onFailure}).Draw(t, "restartPolicy"),
	}
	if rapid.Bool().Draw(t, "indexed") {
		s.CompletionMode = indexed
		if rapid.Bool().Draw(t, "perIndex") {
			s.BackoffLimitPerIndex = proto.Int32(rapid.Int32Range(0, 2).Draw(t, "limitPerIndex"))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "deadline") == 0 {
		s.ActiveDeadlineSeconds = proto.Int64(rapid.Int64Range(1, 300).Draw(t, "seconds"))
	}
	sc := simulate.Scenario{
		Spec: s, Seed: rapid.Uint64().Draw(t, "seed"), FailRate: rapid.Float64Range(0, 1).Draw(t, "failRate"),
		Runtime: simulate.Runtime{Mean: time.Minute, Spread: time.Minute}, Span: 24 * time.Hour, Moments: true,
	}
	if rapid.Bool().Draw(t, "suspend") {
		at := time.Duration(rapid.IntRange(1, 200).Draw(t, "at")) * time.Second
		sc.Changes = []simulate.Change{{At: at, Suspend: new(true)}, {At: at + time.Minute, Suspend: new(false)}}
	}
	return sc
}

func checkResult(t *rapid.T, r *simulate.Result) {
	switch r.Verdict {
	case "Complete":
		if r.Status.GetSucceeded() != r.Spec.GetCompletions() {
			t.Errorf("Complete with succeeded %d of %d", r.Status.GetSucceeded(), r.Spec.GetCompletions())
		}
	case "Failed":
		if r.Reason == "" {
			t.Error("Failed without a reason")
		}
	default:
		t.Errorf("verdict %s: %s\n%s", r.Verdict, r.Stopped, story(r))
	}
	if n := r.Status.GetActive() + r.Status.GetReady() + r.Status.GetTerminating(); n != 0 || r.Status.GetUncounted() != nil {
		t.Errorf("a finished Job has pods left: %v", r.Status)
	}
	succeeded := map[int32]bool{}
	for _, p := range r.Pods {
		if p.Ended == nil {
			t.Errorf("pod %s never ends", p.Name)
		}
		if p.Outcome == "succeeded" {
			key := int32(p.Number)
			if p.Index != nil {
				key = *p.Index
			}
			succeeded[key] = true
		}
	}
	if len(succeeded) != int(r.Status.GetSucceeded()) {
		t.Errorf("succeeded %d, of the pods %d did", r.Status.GetSucceeded(), len(succeeded))
	}
}

// A seed changes what is drawn, and the share of failures is what was asked for.
func TestRepeat(t *testing.T) {
	d, err := simulate.Repeat(simulate.Scenario{
		Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 0 }), FailRate: 0.25,
		Runtime: simulate.Runtime{Mean: 10 * time.Minute, Spread: 5 * time.Minute},
	}, 4000)
	if err != nil {
		t.Fatal(err)
	}
	if d.Runs != 4000 || len(d.Verdicts) != 2 || d.Verdicts[0].Verdict != "Complete" || d.Verdicts[1].Reason != "BackoffLimitExceeded" {
		t.Fatalf("verdicts %+v", d.Verdicts)
	}
	if failed := d.Verdicts[1].Runs; failed < 850 || failed > 1150 {
		t.Errorf("failed plays %d of 4000, want about a quarter", failed)
	}
	if m := d.Makespan; m.Min < 5*time.Minute || m.Max > 15*time.Minute+time.Second || m.P50 < 9*time.Minute || m.P50 > 11*time.Minute {
		t.Errorf("makespan %+v, want 10 min ± 5", m)
	}
	if one := (simulate.Counts{Min: 1, P50: 1, P90: 1, P99: 1, Max: 1}); d.Pods != one {
		t.Errorf("pods %+v, want 1", d.Pods)
	}
}

func TestPlayRefusesScenarios(t *testing.T) {
	cases := map[string]struct {
		scenario simulate.Scenario
		want     string
	}{
		"no spec":         {want: "spec: is required"},
		"a rate above 1":  {scenario: simulate.Scenario{Spec: spec(1), FailRate: 1.5}, want: "fail rate: must be from 0 to 1"},
		"a negative span": {scenario: simulate.Scenario{Spec: spec(1), Span: -1}, want: "span: must be 0 or more"},
		"a spread too large": {
			scenario: simulate.Scenario{Spec: spec(1), Runtime: simulate.Runtime{Mean: 1, Spread: 2}},
			want:     "runtime: must be",
		},
		"more pods than a request may list": {scenario: simulate.Scenario{Spec: spec(1), MaxPods: 100_001}, want: "max pods: must be from 0 to 100000"},
		"an unknown index": {
			scenario: simulate.Scenario{Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.CompletionMode = indexed }), Scripts: script(t, "1:fail")},
			want:     "the Job has the indexes 0 to 0",
		},
		"a second run": {
			scenario: simulate.Scenario{Spec: spec(1), Scripts: script(t, "0:fail,succeed")},
			want:     "a pod of this Job runs once",
		},
		"a size": {
			scenario: simulate.Scenario{Spec: spec(1), Changes: []simulate.Change{scale(t, "completions=2@1m")}},
			want:     "only for an Indexed Job",
		},
		"what the engine won't": {scenario: simulate.Scenario{Spec: &jobpolicyv1.JobSpec{RestartPolicy: 7}}, want: "spec.restart_policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := simulate.Play(tc.scenario); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestAnEndlessPlayStops(t *testing.T) {
	r, err := simulate.Play(simulate.Scenario{
		Spec: spec(1, func(s *jobpolicyv1.JobSpec) { s.BackoffLimit = 1<<31 - 1 }), Scripts: script(t, "*:fail@1s"), Span: 24 * time.Hour,
	})
	if err != nil || r.Verdict != simulate.Unfinished || r.Stopped != "the play may last 1d" {
		t.Errorf("verdict %s (%s), error %v", r.Verdict, r.Stopped, err)
	}
}

// A pod that runs until after the last moment that a Duration holds does not end, and
// neither does the next run of its container.
func TestATimeThatIsTooFarNeverComes(t *testing.T) {
	for _, span := range []time.Duration{0, math.MaxInt64} {
		r, err := simulate.Play(simulate.Scenario{
			Spec:    spec(1, func(s *jobpolicyv1.JobSpec) { s.RestartPolicy = jobpolicyv1.RestartPolicy_RESTART_POLICY_ON_FAILURE }),
			Scripts: script(t, "0:fail@2562047h47m16s"), Span: span,
		})
		if err != nil || r.Verdict != simulate.Unfinished || r.Makespan != time.Second {
			t.Errorf("span %s: verdict %s after %s, error %v; want none after 1s", span, r.Verdict, r.Makespan, err)
		}
	}
}

func TestAPlayStopsAtItsPods(t *testing.T) {
	sc := simulate.Scenario{
		Spec:    &jobpolicyv1.JobSpec{Parallelism: 1, Completions: proto.Int32(9), BackoffLimit: 100, RestartPolicy: never},
		MaxPods: 3,
	}
	r, err := simulate.Play(sc)
	if err != nil {
		t.Fatal(err)
	}
	if want := "more than 3 pods were created"; r.Stopped != want || len(r.Pods) != 4 {
		t.Errorf("stopped %q with %d pods, want %q with 4", r.Stopped, len(r.Pods), want)
	}
	// A huge Job is stopped in its first moment, after the decision that creates too many.
	r, err = simulate.Play(simulate.Scenario{Spec: &jobpolicyv1.JobSpec{Parallelism: 1<<31 - 1, BackoffLimit: 100, RestartPolicy: never}, MaxPods: 3})
	if err != nil || len(r.Pods) > 1000 || r.Stopped != "more than 3 pods were created" {
		t.Errorf("error %v, stopped %q with %d pods, want one decision's pods", err, r.Stopped, len(r.Pods))
	}
}

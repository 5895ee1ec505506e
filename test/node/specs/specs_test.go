package specs

import (
	"regexp"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"jobpolicy.dev/deploy/local/must"
)

// named makes a spec of a name that stands for itself.
func named(name string) Spec { return Spec{Text: "[sig-apps] " + name} }

func names(specs []Spec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name())
	}
	return names
}

func TestFromReport(t *testing.T) {
	it := func(container, text string, labels ...string) types.SpecReport {
		return types.SpecReport{
			LeafNodeType: types.NodeTypeIt, ContainerHierarchyTexts: []string{container},
			LeafNodeText: text, LeafNodeLabels: labels,
		}
	}
	preview := types.Report{SpecReports: types.SpecReports{
		{LeafNodeType: types.NodeTypeBeforeSuite},
		it("[sig-apps] Job", "deletes [Conformance]", "Conformance"),
		it("[sig-apps] JobSet", "is none of ours"),
		it("[sig-node] Job", "is of others"),
		it("[sig-apps] CronJob", "runs alone [Serial]", "Serial"),
		it("[sig-apps] TTLAfterFinished", "is in beta [FeatureGate:A] [Beta]", "FeatureGate:A", "Beta"),
		it("[sig-apps] Job", "is off [FeatureGate:B]", "FeatureGate:B", "Feature:OffByDefault", "FeatureGate:C"),
	}}
	want := []Spec{
		{Text: "[sig-apps] Job deletes [Conformance]", Conformance: true},
		{Text: "[sig-apps] CronJob runs alone [Serial]", Serial: true},
		{Text: "[sig-apps] TTLAfterFinished is in beta [FeatureGate:A] [Beta]"},
		{Text: "[sig-apps] Job is off [FeatureGate:B]", Gates: []string{"B", "C"}},
	}
	got := FromReport(preview)
	must.Equal(t, "specs", want, got)
	wantNames := []string{"Job deletes", "CronJob runs alone", "TTLAfterFinished is in beta", "Job is off"}
	must.Equal(t, "names", wantNames, names(got))
}

func TestChoose(t *testing.T) {
	const long, longest = "CronJob should schedule multiple jobs concurrently", "CronJob should not schedule jobs when suspended"
	minute := "CronJob should remove from active list jobs that have been deleted"
	alone, gated := named("Job alone"), named("Job gated")
	alone.Serial, gated.Gates = true, []string{"A", "B"}
	all := []Spec{named("Job first"), alone, named(long), gated, named("Job last"), named(longest), named(minute)}

	cases := map[string]struct {
		choice    Choice
		run, left []string
	}{
		"what takes more than two minutes is left": {
			run:  []string{long, minute, "Job first", "Job alone", "Job last"},
			left: []string{"Job gated", longest},
		},
		"all, the longest first": {
			choice: Choice{All: true},
			run:    []string{longest, long, minute, "Job first", "Job alone", "Job last"},
			left:   []string{"Job gated"},
		},
		"one gate of two is not enough": {
			choice: Choice{Gates: []string{"A"}, Focus: regexp.MustCompile("gated")},
			left:   []string{"Job gated"},
		},
		"both gates": {
			choice: Choice{Gates: []string{"B", "A"}, Focus: regexp.MustCompile("gated|first")},
			run:    []string{"Job first", "Job gated"},
		},
		"a focus on nothing": {choice: Choice{Focus: regexp.MustCompile("nothing")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, left := tc.choice.Choose(all)
			must.Equal(t, "run", tc.run, names(run))
			var leftNames []string
			for _, l := range left {
				leftNames = append(leftNames, l.Name())
			}
			must.Equal(t, "left", tc.left, leftNames)
		})
	}
}

func TestCheck(t *testing.T) {
	var all []Spec
	for name := range waits {
		all = append(all, named(name))
	}
	for len(all) < fewest {
		all = append(all, named("Job"))
	}
	if err := Check(all); err != nil {
		t.Errorf("all specs are there: %v", err)
	}
	if err := Check(all[1:]); err == nil {
		t.Error("a spec is missing: no error")
	}
	all[0] = named("CronJob renamed")
	if err := Check(all); err == nil {
		t.Error("a long spec has another name: no error")
	}
}

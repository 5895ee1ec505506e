package world

import (
	"strings"
	"testing"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The table crosses features, faults and outcomes, and says what no Job had.
func TestCrossing(t *testing.T) {
	var x crossing
	indexed := func(outcomes ...string) (jobs []crossedJob) {
		for _, o := range outcomes {
			jobs = append(jobs, crossedJob{Features: []string{"Indexed"}, Outcome: o})
		}
		return jobs
	}
	x.add(indexed("Complete CompletionsReached", "Complete SuccessPolicy", "Failed BackoffLimitExceeded"), map[string]bool{"500": true, "503": true, "kill": true})
	x.add(indexed("suspended"), map[string]bool{"503": true, "create": true})
	x.add(indexed("goes on"), map[string]bool{"create": true})
	for _, tc := range []struct {
		column string
		want   [3]int
	}{
		{"error", [3]int{2, 1, 1}},
		{"500", [3]int{2, 1, 0}},
		{"503", [3]int{2, 1, 1}},
		{"process", [3]int{2, 1, 0}},
		{"kill", [3]int{2, 1, 0}},
		{nothing, [3]int{0, 0, 1}},
		{"lost/late", [3]int{}},
	} {
		if got := *x.cell("Indexed", tc.column); got != tc.want {
			t.Errorf("Indexed Jobs beside %s: %v, want %v", tc.column, got, tc.want)
		}
	}
	short := x.table(false)
	for _, want := range []string{"  2/1/1 ", "NONE", "NOT COVERED, ", "  Indexed × lost/late; "} {
		if !strings.Contains(short, want) {
			t.Errorf("the table lacks %q:\n%s", want, short)
		}
	}
	for _, table := range []string{short, x.table(true)} {
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(line); n > 133 { // The log indents it by 8.
				t.Errorf("a line of %d characters: %s", n-1, line)
			}
		}
	}
}

// A pair that some Job had is not listed as missing.
func TestCrossingOfEverything(t *testing.T) {
	var x crossing
	everything := []crossedJob{{Features: crossedFeatures, Outcome: "goes on"}}
	x.add(everything, nil)
	for _, class := range faultClasses {
		for _, kind := range class.kinds {
			x.add(everything, map[string]bool{kind: true})
		}
	}
	for _, each := range []bool{false, true} {
		if table := x.table(each); strings.Contains(table, "NO") || !strings.Contains(table, "pairs were covered") {
			t.Errorf("something is missing:\n%s", table)
		}
	}
}

// Each fault that can be drawn belongs to a class.
func TestEachFaultIsInAClass(t *testing.T) {
	classes := map[string]int{}
	for _, class := range faultClasses {
		for _, kind := range class.kinds {
			classes[kind]++
		}
	}
	for _, kind := range append(faultKinds, hangs, altering, guarded, engineNarrow, engineGarbled, engineEarlier) {
		if n := classes[string(kind)]; n != 1 {
			t.Errorf("fault %q is in %d classes", kind, n)
		}
	}
}

// A Job has the features of its plan, or those of its CronJob.
func TestFeaturesOfAJob(t *testing.T) {
	p := &plan{
		jobs:  []*jobPlan{{namespace: "ns", name: "a", spec: batchv1.JobSpec{Suspend: new(true)}}},
		crons: []*cronPlan{{namespace: "ns", name: "c", spec: batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent}}},
		calm:  3 * longestRhythm,
	}
	run := metav1.ObjectMeta{Namespace: "ns", Name: "c-1", OwnerReferences: []metav1.OwnerReference{{Kind: "CronJob", Name: "c", Controller: new(true)}}}
	for name, tc := range map[string]struct {
		job  batchv1.Job
		want string
	}{
		"of the plan": {batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, "work queue, created suspended"},
		"a run":       {batchv1.Job{ObjectMeta: run}, "work queue, of CronJob, Forbid, of CronJob, over weeks"},
		"unknown":     {batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}, ""},
	} {
		if got := strings.Join(p.crossed(&tc.job), ", "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

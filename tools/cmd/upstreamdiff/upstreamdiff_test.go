package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const before = `package p

// T is a type.
type T struct {
	Kept string // a comment
	Gone int
}

type Old struct{ A, B int }

func same() { logger.V(2).Info("then", "x", 1) }

func changed() int { return 1 }

var gates = map[string]bool{"A": true, "B": true}

var roles = func() {}

func build() {
	role("job-controller", "get")
	role("other", "get")
}

var _ = Describe("Job", func() {
	framework.ConformanceIt("runs", func() { run(1) })
	ginkgo.It("ends", func() { end() })
})
`

const after = `package p

// T is the same type with other words.
type T struct {
	Kept string
	New  int
}

type Fresh struct{ A, B int }

func same() { logger.Info("now", "y", 2) }

func changed() int { return 2 }

var gates = map[string]bool{"A": false, "C": true}

var roles = func() {}

func build() {
	role("job-controller", "get", "patch")
	role("other", "list")
}

var _ = Describe("Job", func() {
	framework.ConformanceIt("runs", func() { run(2) })
	ginkgo.It("ends", func() { end() })
})
`

// parsed are the declarations of a source.
func parsed(t *testing.T, source string, a area) map[string]declaration {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found := map[string]declaration{}
	if err := parse(path, "pkg/p.go", a, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// lines are what a report shows of the changes, without the file.
func lines(changes []change) []string {
	var out []string
	for _, c := range changes {
		d, sign, _ := c.shown()
		out = append(out, sign+" "+d.name)
	}
	return out
}

func TestChanges(t *testing.T) {
	cases := map[string]struct {
		area area
		want []string
	}{
		"declarations, but no comments and no logs": {
			want: []string{
				"- T.Gone", "+ T.New", "~ func build", "~ func changed", `~ gates["A"]`, `- gates["B"]`, `+ gates["C"]`,
				`~ spec "runs"`, "+ type Fresh", "- type Old",
			},
		},
		"names that match":      {area{only: regexp.MustCompile(`^gates`)}, []string{`~ gates["A"]`, `- gates["B"]`, `+ gates["C"]`}},
		"statements that match": {area{statements: regexp.MustCompile(`"job-controller"`)}, []string{"~ build: job-controller"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := lines(compare(parsed(t, before, tc.area), parsed(t, after, tc.area)))
			if !slices.Equal(got, tc.want) {
				t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestAPackageThatIsNewIsOneChange(t *testing.T) {
	got := lines(compare(nil, parsed(t, after, area{})))
	if want := []string{"+ package pkg"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}

func TestOnlyFieldsThatAFieldLeadsTo(t *testing.T) {
	found := parsed(t, "package p\ntype Pod struct { Spec *Spec }\ntype Spec struct { Next []Leaf }\ntype Leaf struct { X int }\ntype Other struct { Y int }\nfunc f() {}\n", area{})
	keepReachable(found, "Pod")
	var got []string
	for _, d := range found {
		got = append(got, d.name)
	}
	slices.Sort(got)
	if want := []string{"Leaf.X", "Pod.Spec", "Spec.Next", "type Leaf", "type Pod", "type Spec"}; !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
}

func TestDifferingLines(t *testing.T) {
	got := differing([]string{"a", "b", "c"}, []string{"a", "x", "c", "d"})
	if want := []string{"- b", "+ x", "+ d"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// Each path that follows upstream is there, and a wrong one would be told of.
func TestPathsThatFollow(t *testing.T) {
	var out bytes.Buffer
	for _, a := range followed {
		report(&out, "../../..", a, nil, false)
	}
	if strings.Contains(out.String(), "is not there") {
		t.Error(out.String())
	}
	out.Reset()
	report(&out, t.TempDir(), followed[0], nil, false)
	if !strings.Contains(out.String(), "is not there") {
		t.Error("a path that is missing is not told of")
	}
}

// From v1.36 to v1.37, what needed a change here is in the report.
func TestWhatChangedInV137(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads two releases of Kubernetes")
	}
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{"-C", "../../..", "v1.36.3", "v1.37.2"}, &out, &problems); code != 0 {
		t.Fatalf("exit status %d: %s", code, problems.String())
	}
	for _, want := range []string{
		"+ JobSpec.Scheduling", "+ PodSpec.EvictionResponders", // Fields that templates would lose.
		"- package v1alpha2", "+ type PodGroup ", "+ package workloadbuilder",
		"- JobStatusValidationOptions.AllowForSuccessCriteriaMetInExtendedScope", "+ func ValidateJobCreate", "+ func validateGangMinCount",
		"~ func (jobStrategy) Validate ", "+ cronJobStrategy.rest.DeclarativeValidation",
		"~ func onlyReplaceFailedPods", "~ func (*Controller) deleteJob ", "~ func (*Controller) syncOrphanPodsBySelector", "- func IsGangSchedulingCandidate",
		"+ func getManagementMode", "+ func (*Controller) syncGangMinCount", "+ func (*Controller) getOrCreateDelegatedPodGroup",
		"+ jobControllerUIDIndex", "~ func (*ControllerV2) processNextWorkItem",
		"~ buildControllerRoles: jobControllerRules",
		"[GangScheduling]", "[GenericWorkload]", "[JobSuccessPolicy]", "[SidecarContainers]",
		"+ func TestJobRecreationClearsPodExpectations", "+ func TestJobGangSchedulingElasticScaling", "+ func TestJobDelegatedPodGroup", "- func TestJobAdmissionParallelismUpdate",
		"+ spec ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"one version":       {[]string{"v1.36.3"}, "expected two versions"},
		"no version":        {[]string{"1.36", "v1.37.2"}, `"1.36" is no version`},
		"a version unknown": {[]string{"v1.36.3", "v1.36.99"}, "v0.36.99"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			if code := run(t.Context(), tc.args, &out, &problems); code == 0 || !strings.Contains(problems.String(), tc.want) {
				t.Errorf("exit status %d, message %q, want %q", code, problems.String(), tc.want)
			}
		})
	}
}

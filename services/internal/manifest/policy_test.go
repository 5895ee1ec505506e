package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/manifest"
)

func TestMistakesInAJobPolicyHaveTheirLine(t *testing.T) {
	cases := map[string]struct {
		document string
		want     []manifest.Problem
	}{
		"none": {document: "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: a}\nspec: {job: {ttlSecondsAfterFailed: 1}}\n"},
		"values": {
			document: "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: a}\nspec:\n  job:\n    ttlSecondsAfterFailed: -1\n  cronJob:\n    skippedHour: Never\n",
			want: []manifest.Problem{
				{Path: "spec.cronJob.skippedHour", Line: 8, Text: `expected one of Skip, RunAfter, found "Never"`},
				{Path: "spec.job.ttlSecondsAfterFailed", Line: 6, Text: "expected a whole number from 0 to 2147483647, found -1"},
			},
		},
		"no spec":       {document: "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nmetadata: {name: a}\n", want: []manifest.Problem{{Path: "spec", Line: 1, Text: "is required"}}},
		"another field": {document: "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nspec: {}\nspecs: {}\n", want: []manifest.Problem{{Path: "specs", Line: 4, Text: "unknown field"}}},
		"a field twice": {document: "apiVersion: jobpolicy.dev/v1alpha1\nkind: JobPolicy\nspec: {}\nmetadata: {name: a, name: b}\n", want: []manifest.Problem{{Path: "metadata.name", Line: 4, Text: "duplicate field, first on line 4"}}},
		"another version": {
			document: "apiVersion: jobpolicy.dev/v1\nkind: JobPolicy\nspec: {}\n",
			want:     []manifest.Problem{{Path: "apiVersion", Line: 1, Text: `"jobpolicy.dev/v1": expected jobpolicy.dev/v1alpha1`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Read("f.yaml", []byte(tc.document))
			if err != nil || len(objects) != 1 {
				t.Fatalf("%d objects, %v", len(objects), err)
			}
			if diff := cmp.Diff(tc.want, objects[0].Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoUsesAPolicyGetsItsSpec(t *testing.T) {
	const (
		policies = `
apiVersion: jobpolicy.dev/v1alpha1
kind: JobPolicy
metadata: {name: a}
spec: {job: {ttlSecondsAfterFailed: 1}}
---
apiVersion: jobpolicy.dev/v1alpha1
kind: JobPolicy
metadata: {name: elsewhere, namespace: other}
spec: {}
---
apiVersion: jobpolicy.dev/v1alpha1
kind: JobPolicy
metadata: {name: invalid}
spec: {jobs: {}}
---
`
		job = `
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: ns, annotations: {jobpolicy.dev/policy: "POLICY"}}
`
		spec = `{"job":{"ttlSecondsAfterFailed":1}}`
	)
	for name, want := range map[string]string{"a": spec, "elsewhere": "elsewhere", "invalid": "invalid", "gone": "gone", "{}": "{}"} {
		objects, err := manifest.Read("f.yaml", []byte(policies+job))
		if err != nil {
			t.Fatal(err)
		}
		user := objects[len(objects)-1].Job
		user.Annotations[wire.Policy] = name
		manifest.UsePolicies(objects)
		if got := user.Annotations[wire.Policy]; got != want {
			t.Errorf("%s: the annotation is %s, want %s", name, got, want)
		}
	}
	objects, err := manifest.Read("f.yaml", []byte(policies+`
apiVersion: batch/v1
kind: CronJob
metadata: {name: c, annotations: {jobpolicy.dev/policy: a}}
spec: {jobTemplate: {metadata: {annotations: {jobpolicy.dev/policy: a}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	manifest.UsePolicies(objects)
	cron := objects[len(objects)-1].CronJob
	if got := []string{cron.Annotations[wire.Policy], cron.Spec.JobTemplate.Annotations[wire.Policy]}; !cmp.Equal(got, []string{spec, spec}) {
		t.Errorf("a CronJob and its template have %q", got)
	}
}

package manifest_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/services/internal/manifest"
	"jobpolicy.dev/services/internal/testenv"
)

const twoDocuments = `# A comment.
apiVersion: batch/v1
kind: Job
metadata:
  name: first
spec:
  backofLimit: 3
  parallelism: 2
  podFailurePolicy:
    rules:
    - action: FailJob
      onExitCodes:
        operator: In
        values: [42]
    - action: Ignore
---
apiVersion: v1
kind: ConfigMap
---

apiVersion: batch/v1
kind: CronJob
metadata:
  name: second
spec:
  schedule: "* * * * *"
`

func TestReadFindsObjectsAndLines(t *testing.T) {
	objects, err := manifest.Read("f.yaml", []byte(twoDocuments))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 || objects[0].Job == nil || objects[1].Kind != "ConfigMap" || objects[2].CronJob == nil {
		t.Fatalf("objects %+v", objects)
	}
	want := []manifest.Problem{{Path: "spec.backofLimit", Line: 7, Text: "unknown field"}}
	if diff := cmp.Diff(want, objects[0].Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	cases := []struct {
		object int
		path   string
		want   int
	}{
		{object: 0, path: "", want: 2},
		{object: 0, path: "spec.parallelism", want: 8},
		{object: 0, path: "spec.podFailurePolicy.rules[1].action", want: 15},
		{object: 0, path: "spec.podFailurePolicy.rules[0].onExitCodes.values[0]", want: 14},
		{object: 0, path: "spec.template.spec", want: 6},
		{object: 2, path: "spec.schedule", want: 26},
	}
	for _, tc := range cases {
		if got := objects[tc.object].Line(tc.path); got != tc.want {
			t.Errorf("line of %q in document %d: %d, want %d", tc.path, tc.object, got, tc.want)
		}
	}
}

func TestReadSetsTheDefaultsOfTheAPIServer(t *testing.T) {
	cases := map[string]struct {
		spec                     string
		completions, parallelism int32 // -1: absent
		backoffLimit             int32
	}{
		"neither size":      {spec: "{}", completions: 1, parallelism: 1, backoffLimit: -1},
		"a work queue":      {spec: "{parallelism: 3}", completions: -1, parallelism: 3, backoffLimit: -1},
		"completions alone": {spec: "{completions: 4}", completions: 4, parallelism: 1, backoffLimit: -1},
		"limits per index":  {spec: "{completions: 4, backoffLimitPerIndex: 1}", completions: 4, parallelism: 1, backoffLimit: 1<<31 - 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Read("f", []byte("{apiVersion: batch/v1, kind: Job, spec: "+tc.spec+"}"))
			if err != nil {
				t.Fatal(err)
			}
			spec := objects[0].Job.Spec
			for _, f := range []struct {
				name string
				got  *int32
				want int32
			}{
				{name: "completions", got: spec.Completions, want: tc.completions},
				{name: "parallelism", got: spec.Parallelism, want: tc.parallelism},
				{name: "backoffLimit", got: spec.BackoffLimit, want: tc.backoffLimit},
			} {
				if (f.got == nil) != (f.want == -1) || (f.got != nil && *f.got != f.want) {
					t.Errorf("%s %v, want %d", f.name, f.got, f.want)
				}
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no kind":                {"a: b\n", `f: the document that begins on line 1: kind: is missing`},
		"an item without a kind": {"apiVersion: v1\nkind: List\nitems:\n- {}\n", `f: the document that begins on line 1: items[0]: kind: is missing`},
		"a document on the line of its separator": {"kind: A\n--- {kind: B}\n", "f: the document that begins on line 1: a further document begins on line 2: "},
		"JSON after JSON":                         {"{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n", "f: the document that begins on line 1: "},
		"a list of lines":                         {"- a\n- b\n", `f: the document that begins on line 1: kind: is missing`},
		"a text":                                  {"kind: A\n---\nhello\n", `f: the document that begins on line 3: kind: is missing`},
		"a kind that is no text":                  {"apiVersion: v1\nkind: 3\n", `f: the document that begins on line 1: kind: expected a text, in quotes if it looks like something else, got a number`},
		"items that are no list":                  {"apiVersion: v1\nkind: List\nitems: 3\n", `f: the document that begins on line 1: items: expected a list, got a number`},
		"the line of the file":                    {"kind: Job\n---\nkind: Job\nspec: {\n", "f: the document that begins on line 3: yaml: line 4: "},
		"no YAML":                                 {"kind: Job\n---\n  - a\n b", "f: the document that begins on line 3: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Read("f", []byte(tc.text))
			testenv.WantError(t, err, tc.want)
		})
	}
}

const numberForText = "expected a text, in quotes if it looks like something else, got a number"

// A value of another type is a problem at its field, and the objects after it are read, too.
func TestReadNamesAValueOfAnotherType(t *testing.T) {
	cases := map[string]struct{ spec, path, text string }{
		"a text for a number":     {"{parallelism: many}", "spec.parallelism", "expected a whole number, got a text"},
		"a text for a switch":     {"{suspend: 'no'}", "spec.suspend", "expected true or false, got a text"},
		"a number for a text":     {"{managedBy: 3}", "spec.managedBy", numberForText},
		"fields for a list":       {"{template: {spec: {containers: {}}}}", "spec.template.spec.containers", "expected a list, got fields"},
		"an item of a list":       {"{template: {spec: {containers: [{env: [{value: a}, {value: 1}]}]}}}", "spec.template.spec.containers[0].env[1].value", numberForText},
		"a text in a list":        {"{template: {spec: {containers: [{args: [a, 1]}]}}}", "spec.template.spec.containers[0].args[1]", numberForText},
		"a field of a volume":     {"{template: {spec: {volumes: [{configMap: x}]}}}", "spec.template.spec.volumes[0].configMap", "expected fields, got a text"},
		"a field of a probe":      {"{template: {spec: {containers: [{livenessProbe: {httpGet: {port: true}}}]}}}", "spec.template.spec.containers[0].livenessProbe.httpGet.port", "expected a whole number or a text, got true or false"},
		"a label":                 {"{template: {metadata: {labels: {app.k8s.io/version: 1.5}}}}", "spec.template.metadata.labels[app.k8s.io/version]", numberForText},
		"a number too large":      {"{backoffLimit: 2147483648}", "spec.backoffLimit", "2147483648: expected a whole number from -2147483648 to 2147483647"},
		"a fraction":              {"{completions: 1.5}", "spec.completions", "1.5: expected a whole number"},
		"no time":                 {"{template: {metadata: {creationTimestamp: now}}}", "spec.template.metadata.creationTimestamp", `"now": expected a time such as 2026-03-28T00:00:00Z`},
		"a list for a quantity":   {"{template: {spec: {containers: [{resources: {limits: {cpu: [1]}}}]}}}", "spec.template.spec.containers[0].resources.limits.cpu", "expected a quantity such as 500m or 1Gi, got a list"},
		"no quantity of a volume": {"{template: {spec: {volumes: [{emptyDir: {sizeLimit: much}}]}}}", "spec.template.spec.volumes[0].emptyDir.sizeLimit", `"much": expected a quantity such as 500m or 1Gi`},
		"no quantity":             {"{template: {spec: {containers: [{resources: {limits: {cpu: two}}}]}}}", "spec.template.spec.containers[0].resources.limits.cpu", `"two": expected a quantity such as 500m or 1Gi`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Read("f", []byte("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: "+tc.spec+"}\n---\n{apiVersion: batch/v1, kind: Job}\n"))
			if err != nil || len(objects) != 2 {
				t.Fatalf("%d objects, error %v", len(objects), err)
			}
			o, want := objects[0], []manifest.Problem{{Path: tc.path, Line: 1, Text: tc.text}}
			if diff := cmp.Diff(want, o.Problems); diff != "" || !o.Incomplete || o.Name() != "j" {
				t.Errorf("incomplete %t, name %q, problems (-want +got):\n%s", o.Incomplete, o.Name(), diff)
			}
			if len(objects[1].Problems) > 0 || objects[1].Incomplete {
				t.Errorf("the object after it has problems %v", objects[1].Problems)
			}
		})
	}
}

// Every value of another type is named, with its own line.
func TestReadNamesTheLineOfEveryValue(t *testing.T) {
	const text = `apiVersion: batch/v1
kind: Job
metadata:
  labels:
    app.kubernetes.io/name: a
    app.kubernetes.io/version: 2
spec:
  template:
    spec:
      containers:
      - name: a
      - name: b
        env:
        - name: ONE
          value: "1"
        - name: TWO
          value: 2
`
	objects, err := manifest.Read("f", []byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, error %v", len(objects), err)
	}
	if diff := cmp.Diff([]manifest.Problem{
		{Path: "metadata.labels[app.kubernetes.io/version]", Line: 6, Text: numberForText},
		{Path: "spec.template.spec.containers[1].env[1].value", Line: 17, Text: numberForText},
	}, objects[0].Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// A Job or CronJob of a version that the API server does not serve is not taken for another
// object, which nobody looks at.
func TestReadRefusesOtherVersions(t *testing.T) {
	cases := map[string]manifest.Problem{
		"{apiVersion: batch/v1beta1, kind: CronJob}":     {Path: "apiVersion", Line: 1, Text: `"batch/v1beta1": expected batch/v1`},
		"{apiVersion: batch/v1beta1, kind: CronJobList}": {Path: "apiVersion", Line: 1, Text: `"batch/v1beta1": expected batch/v1`},
		"{apiVersion: v1, kind: Job}":                    {Path: "apiVersion", Line: 1, Text: `"v1": expected batch/v1`},
		"{kind: Job}":                                    {Path: "apiVersion", Line: 1, Text: "is missing; expected batch/v1"},
		"{apiVersion: batch/v1, kind: cronJob}":          {Path: "kind", Line: 1, Text: `"cronJob": expected CronJob`},
	}
	for text, want := range cases {
		objects, err := manifest.Read("f", []byte(text))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %d objects, error %v", text, len(objects), err)
		}
		if diff := cmp.Diff([]manifest.Problem{want}, objects[0].Problems); diff != "" || !objects[0].Incomplete {
			t.Errorf("%s: problems (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job}", "{apiVersion: v1, kind: Pod}"} {
		if objects, err := manifest.Read("f", []byte(text)); err != nil || objects[0].Incomplete {
			t.Errorf("%s: %+v, error %v", text, objects[0], err)
		}
	}
}

// The objects beside a document without a kind are read, too.
func TestReadGoesOnWithoutAKind(t *testing.T) {
	objects, err := manifest.Read("f", []byte("a: b\n---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j}}\n---\n- c\n"))
	if !errors.Is(err, manifest.ErrNoKind) || len(objects) != 1 || objects[0].Name() != "j" {
		t.Errorf("%d objects, error %v", len(objects), err)
	}
}

// Each text has the CronJob c with its schedule on line 10, after the Job j.
func TestReadFindsAllObjectsOfAFile(t *testing.T) {
	cases := map[string]string{
		"a separator with a comment": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n---  # second\n---\t# third\n" +
			"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  schedule: '@daily'\n--- # nothing\n# no object\n",
		"a list": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: batch/v1, kind: Job, metadata: {name: j}}\n" +
			"- apiVersion: batch/v1\n  kind: CronJob\n  metadata: {name: c}\n\n  spec:\n    schedule: '@daily'\n",
		"lists of one kind in a list": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: batch/v1, kind: JobList, items: [{metadata: {name: j}}]}\n" +
			"- apiVersion: batch/v1\n  kind: CronJobList\n  items:\n  - metadata: {name: c}\n    spec:\n      schedule: '@daily'\n",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Read("f", []byte(text))
			if err != nil || len(objects) != 2 || objects[0].Job == nil || objects[1].CronJob == nil {
				t.Fatalf("%d objects, error %v", len(objects), err)
			}
			if j, c, line := objects[0].Name(), objects[1].Name(), objects[1].Line("spec.schedule"); j != "j" || c != "c" || line != 10 {
				t.Errorf("names %q and %q, schedule on line %d", j, c, line)
			}
		})
	}
}

func TestReadFindsRepeatedFields(t *testing.T) {
	const text = `# A comment.
---
kind: Job
apiVersion: batch/v1
spec:
  backoffLimit: 1
  parallelism: 2
  backoffLimit: 3
  backoffLimit: 4
  template:
    spec:
      containers:
      - name: a
        env: []
        env: []
---
kind: ConfigMap
data: {a: b, a: c}
`
	objects, err := manifest.Read("f", []byte(text))
	if err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, error %v", len(objects), err)
	}
	want := []manifest.Problem{
		{Path: "spec.backoffLimit", Line: 9, Text: "duplicate field, first on line 6"},
		{Path: "spec.template.spec.containers[0].env", Line: 15, Text: "duplicate field, first on line 14"},
	}
	if diff := cmp.Diff(want, objects[0].Problems); diff != "" || len(objects[1].Problems) > 0 {
		t.Errorf("problems of the other object %v, of the Job (-want +got):\n%s", objects[1].Problems, diff)
	}
	if got := *objects[0].Job.Spec.BackoffLimit; got != 4 {
		t.Errorf("backoffLimit %d, want the last", got)
	}
}

func TestReadTakesEveryExample(t *testing.T) {
	paths, err := filepath.Glob("../../../deploy/examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		objects, err := manifest.ReadFile(path, nil)
		if err != nil {
			t.Error(err)
		}
		for _, o := range objects {
			if len(o.Problems) > 0 || o.Name() == "" {
				t.Errorf("%s: %s %q: problems %v", path, o.Kind, o.Name(), o.Problems)
			}
		}
	}
}

// The status of a condition in a pod failure policy is True unless the manifest says
// otherwise, as the API server has it.
func TestConditionStatusDefault(t *testing.T) {
	const text = `{"apiVersion": "batch/v1", "kind": "Job", "spec": {"podFailurePolicy": {"rules": [
		{"action": "Ignore", "onPodConditions": [{"type": "A"}, {"type": "B", "status": "False"}]}]}}}`
	objects, err := manifest.Read("-", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	patterns := objects[0].Job.Spec.PodFailurePolicy.Rules[0].OnPodConditions
	if patterns[0].Status != "True" || patterns[1].Status != "False" {
		t.Errorf("statuses %q and %q, want True and False", patterns[0].Status, patterns[1].Status)
	}
}

// An unknown field that a Job or CronJob has in another place, or in another spelling, is expected there.
func TestFieldsInTheWrongPlace(t *testing.T) {
	const cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  schedule: '@daily'\n"
	for document, want := range map[string]string{
		cron + "  backoffLimit: 1":                                          "unknown field; expected at spec.jobTemplate.spec.backoffLimit",
		cron + "  jobTemplate: {spec: {concurrencyPolicy: Forbid}}":         "unknown field; expected at spec.concurrencyPolicy",
		cron + "  jobTemplate: {spec: {template: {spec: {suspend: true}}}}": "unknown field; expected at spec.suspend, or at spec.jobTemplate.spec.suspend",
		cron + "  jobTemplate: {spec: {restartPolicy: Never}}":              "unknown field; expected at spec.jobTemplate.spec.template.spec.restartPolicy",
		cron + "  jobTemplate: {spec: {command: [date]}}":                   "unknown field; expected at spec.jobTemplate.spec.template.spec.containers[].command",
		cron + "  startingdeadlineseconds: 1":                               "unknown field; expected at spec.startingDeadlineSeconds",
		cron + "  suspended: true":                                          "unknown field",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {ttlSecondsAfterFinished: 1}}}": "unknown field; expected at spec.ttlSecondsAfterFinished",
	} {
		objects, err := manifest.Read("f.yaml", []byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if p := objects[0].Problems; len(p) != 1 || p[0].Text != want {
			t.Errorf("%s\nproblems %v, want %q", document, p, want)
		}
	}
}

package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // registers what legacyscheme decodes
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// What check calls an error is what the API server's own strategies refuse, and they
// refuse nothing else of this file, which holds objects with and without errors.
func TestCheckAgreesWithTheAPIServer(t *testing.T) {
	file, err := filepath.Abs("../../services/internal/plugin/testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if refused := compareWithTheAPIServer(t, file, strings.Split(string(data), "\n---\n")); refused == 0 {
		t.Error("the API server refuses nothing")
	}
}

// The same of objects that differ in one field from one that is fine.
func TestCheckAgreesAboutEachField(t *testing.T) {
	data, err := os.ReadFile("testdata/one-change.txt")
	if err != nil {
		t.Fatal(err)
	}
	var docs []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			docs = append(docs, changed(t, strings.TrimSuffix(line, "\n")))
		}
	}
	file := filepath.Join(t.TempDir(), "changed.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(docs, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if refused := compareWithTheAPIServer(t, file, docs); refused < 100 || refused == len(docs) {
		t.Errorf("the API server refuses %d of %d", refused, len(docs))
	}
}

// changed is the object of a line of testdata/one-change.txt, as JSON, which is YAML, too.
func changed(t *testing.T, line string) string {
	t.Helper()
	parts := strings.Split(line, "\t")
	kind, name, _ := strings.Cut(parts[0], " ")
	template := map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "busybox"}}}}
	spec := map[string]any{"template": template}
	if kind == "CronJob" {
		spec = map[string]any{"schedule": "0 3 * * *", "jobTemplate": map[string]any{"spec": spec}}
	}
	object := map[string]any{"apiVersion": "batch/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
	for _, change := range parts[1:] {
		path, text, _ := strings.Cut(change, "=")
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		set(object, strings.Split(path, "."), value)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// set changes a field, and makes those around it. A step into a list is a 0.
func set(object map[string]any, path []string, value any) {
	if len(path) == 1 {
		object[path[0]] = value
		return
	}
	switch next := object[path[0]].(type) {
	case []any:
		set(next[0].(map[string]any), path[2:], value)
	case map[string]any:
		set(next, path[1:], value)
	default:
		fields := map[string]any{}
		object[path[0]] = fields
		set(fields, path[1:], value)
	}
}

// compareWithTheAPIServer returns how many objects of a file are refused.
func compareWithTheAPIServer(t *testing.T, file string, docs []string) int {
	t.Helper()
	wrong := objectsWithErrors(t, file)
	refused := 0
	for _, doc := range docs {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		name := head.Kind + "/" + head.Name
		problems := refuse(t, head.GroupVersionKind(), doc)
		if (len(problems) > 0) != wrong[name] {
			t.Errorf("%s: the API server says %v, check finds errors: %t", name, problems, wrong[name])
		}
		if len(problems) > 0 {
			refused++
		}
	}
	if refused != len(wrong) {
		t.Errorf("refused objects %d, objects with errors %d", refused, len(wrong))
	}
	return refused
}

// objectsWithErrors asks check.
func objectsWithErrors(t *testing.T, file string) map[string]bool {
	t.Helper()
	dir := buildPlugin(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-jobpolicy"), "check", "-f", file, "-o", "json").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("check: %v, want exit code 1\n%s", err, out)
	}
	var answer struct {
		Findings []struct{ Object, Severity string }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]bool{}
	for _, f := range answer.Findings {
		if f.Severity == "error" {
			wrong[f.Object] = true
		}
	}
	return wrong
}

// refuse decodes an object strictly, sets the defaults, and validates it as for a
// creation.
func refuse(t *testing.T, kind schema.GroupVersionKind, doc string) []string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	external, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	strict, err := kjson.UnmarshalStrict(data, external)
	if err != nil {
		return []string{err.Error()}
	}
	for _, problem := range strict {
		problems = append(problems, problem.Error())
	}
	legacyscheme.Scheme.Default(external)
	internal, err := legacyscheme.Scheme.ConvertToVersion(external, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return append(problems, err.Error())
	}
	object, err := meta.Accessor(internal)
	if err != nil {
		t.Fatal(err)
	}
	rest.FillObjectMetaSystemFields(object)
	strategy := rest.RESTCreateStrategy(job.Strategy)
	if kind.Kind == "CronJob" {
		strategy = cronjob.Strategy
	}
	ctx := genericapirequest.WithRequestInfo(genericapirequest.WithNamespace(context.Background(), "default"),
		&genericapirequest.RequestInfo{APIGroup: kind.Group, APIVersion: kind.Version})
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

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
	wrong := objectsWithErrors(t, file)
	refused := 0
	for _, doc := range strings.Split(string(data), "\n---\n") {
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
	if refused == 0 || refused != len(wrong) {
		t.Errorf("refused objects %d, objects with errors %d", refused, len(wrong))
	}
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

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// recipe is a row of docs/cookbook.md: the wish, what does it, and the manifest.
var recipe = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`|]+)` \\| \\[[a-z-]+\\]\\(\\.\\./deploy/examples/cookbook/([a-z-]+\\.yaml)\\) \\|")

// The API server takes each manifest of the cookbook, field by field, and kubectl jobpolicy check finds nothing to
// warn of. A new recipe is a row of the page and a file, which has what the row shows.
func TestTheCookbookIsServed(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	namespace := newNamespace(t)
	page, err := os.ReadFile("../../../docs/cookbook.md")
	must.Succeed(t, err)
	const folder = "../../../deploy/examples/cookbook"
	files, err := filepath.Glob(folder + "/*")
	must.Succeed(t, err)
	recipes := recipe.FindAllStringSubmatch(string(page), -1)
	if rows := strings.Count(string(page), "\n| ") - 1; len(recipes) != rows || len(recipes) != len(files) || len(recipes) < 10 {
		t.Fatalf("%d recipes in %d rows with %d files, want as many of each, and ten at least", len(recipes), rows, len(files))
	}
	for _, r := range recipes {
		t.Run(r[2], func(t *testing.T) {
			file := filepath.Join(folder, r[2])
			manifest, err := os.ReadFile(file)
			must.Succeed(t, err)
			documents := strings.Split(string(manifest), "\n---\n")
			holdsWhatTheRowShows(t, r[1], documents[0])
			for _, document := range documents {
				if err := dryApply(t, namespace, document); err != nil {
					t.Errorf("%v\n%s", err, document)
				}
			}
			if out, err := kubectlJobpolicy(t, namespace, "check", "--fail-on=warning", "--dry-run=server", "-f", file); err != nil {
				t.Errorf("check: %v\n%s", err, out)
			}
		})
	}
}

// holdsWhatTheRowShows compares what a row shows with the first object of its manifest: the spec of a JobPolicy, or the
// annotations of a CronJob that needs none.
func holdsWhatTheRowShows(t *testing.T, shown, document string) {
	t.Helper()
	var row, object map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(shown), &row))
	must.Succeed(t, yaml.Unmarshal([]byte(document), &object))
	held := object["spec"]
	if object["kind"] != "JobPolicy" {
		metadata, _ := object["metadata"].(map[string]any)
		held = map[string]any{"annotations": metadata["annotations"]}
	}
	if diff := cmp.Diff(held, any(row)); diff != "" {
		t.Errorf("-manifest +row:\n%s", diff)
	}
}

// dryApply lets the API server say what it thinks of an object.
func dryApply(t *testing.T, namespace, document string) error {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), object); err != nil {
		return err
	}
	resource := map[string]schema.GroupVersionResource{
		"JobPolicy": jobPolicies,
		"Job":       {Group: "batch", Version: "v1", Resource: "jobs"},
		"CronJob":   {Group: "batch", Version: "v1", Resource: "cronjobs"},
	}[object.GetKind()]
	if resource.Resource == "" {
		return fmt.Errorf("kind %q", object.GetKind())
	}
	_, err := dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(resource).Namespace(namespace).Create(t.Context(), object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

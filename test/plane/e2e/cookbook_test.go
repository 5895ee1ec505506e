package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// recipe is a heading of docs/cookbook.md with its text and its only block.
var recipe = regexp.MustCompile("(?ms)^## ([^\n]+)\n\n([^\n`#][^\n]*)\n\n```yaml\n(.*?)^```$")

// The API server takes each manifest of the cookbook, field by field, and kubectl jobpolicy check finds nothing to
// warn of. A new recipe is a heading, a sentence and a block.
func TestTheCookbookIsServed(t *testing.T) {
	t.Parallel()
	servePolicies(t, plane)
	namespace := newNamespace(t)
	page, err := os.ReadFile("../../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := recipe.FindAllStringSubmatch(string(page), -1)
	if headings := strings.Count(string(page), "\n## "); len(recipes) != headings || len(recipes) < 10 {
		t.Fatalf("%d of %d headings have a sentence and a block, want all of them, and ten at least", len(recipes), headings)
	}
	for _, r := range recipes {
		t.Run(r[1], func(t *testing.T) {
			for _, document := range strings.Split(r[3], "\n---\n") {
				if err := dryApply(t, namespace, document); err != nil {
					t.Errorf("%v\n%s", err, document)
				}
			}
			file := filepath.Join(t.TempDir(), "recipe.yaml")
			if err := os.WriteFile(file, []byte(r[3]), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := kubectlJobpolicy(t, namespace, "check", "--fail-on=warning", "--dry-run=server", "-f", file); err != nil {
				t.Errorf("check: %v\n%s", err, out)
			}
		})
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

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// definitions are where CustomResourceDefinitions of optional objects stand: in files of
// a Go module.
type definitions struct {
	module string
	// sum is the module's content as go.sum has it.
	sum string
	// files are below the module's folder.
	files []string
}

// optionalKinds define what the chart makes only for clusters that have it.
var optionalKinds = []definitions{
	{
		module: "github.com/cert-manager/cert-manager@v1.21.2",
		sum:    "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
		files:  []string{"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"},
	},
	{
		module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
		sum:    "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		files: []string{
			"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		},
	},
}

// download fetches the module unless it is there, and returns the definitions.
func (d definitions) download(ctx context.Context) ([]*unstructured.Unstructured, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", d.module)
	command.Env = append(os.Environ(), "GOSUMDB=off") // the sum is checked here
	out, err := command.Output()
	var module struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr != nil || module.Error != "" {
		return nil, fmt.Errorf("download %s: %w", d.module, errors.Join(err, jsonErr, errors.New(module.Error)))
	}
	if module.Sum != d.sum {
		return nil, fmt.Errorf("%s has the sum %s, want %s", d.module, module.Sum, d.sum)
	}
	var objects []*unstructured.Unstructured
	for _, file := range d.files {
		data, err := os.ReadFile(filepath.Join(module.Dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// serveOptionalKinds makes the API server know the optional kinds.
func serveOptionalKinds(t *testing.T, objects dynamic.Interface) {
	t.Helper()
	kinds := objects.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	var names []string
	for _, d := range optionalKinds {
		all, err := d.download(t.Context())
		must.Succeed(t, err)
		for _, object := range all {
			if _, err := kinds.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			names = append(names, object.GetName())
		}
	}
	for _, name := range names {
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			kind, err := kinds.Get(ctx, name, metav1.GetOptions{})
			return err == nil && established(kind), err
		})
		if err != nil {
			t.Fatalf("the API server does not serve %s: %v", name, err)
		}
	}
}

func established(kind *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(kind.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

package release

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The manifest of each mode makes the namespace in which it puts its objects.
func TestManifestsHaveTheirNamespace(t *testing.T) {
	r := Release{Version: "v0.0.0-dev", Repository: "jobpolicy.dev", Out: t.TempDir()}
	if err := os.Mkdir(filepath.Join(r.Out, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		if err := r.manifest("../../..", mode); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.Out, "manifests", mode+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var made string
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var object struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			if err := documents.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			if object.Kind == "Namespace" {
				made = object.Metadata.Name
			} else if in := object.Metadata.Namespace; in != "" && in != made {
				t.Errorf("%s: %s %s is in namespace %s, and the manifest makes %q", mode, object.Kind, object.Metadata.Name, in, made)
			}
		}
	}
}

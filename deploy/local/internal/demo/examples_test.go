package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each manifest of the folder is run, and says at its top how it ends.
func TestExamplesAreAllRunAndSayTheirEnd(t *testing.T) {
	t.Parallel()
	const dir = "../../../examples"
	examples, err := loadExamples(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	there, run := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		there[strings.TrimSuffix(filepath.Base(file), ".yaml")] = true
	}
	for _, ex := range examples {
		run[ex.name] = true
		data, err := os.ReadFile(filepath.Join(dir, ex.name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		comment, _, _ := strings.Cut(string(data), "apiVersion:")
		end := ex.wants[0][strings.LastIndex(ex.wants[0], "(")+1:]
		if reason, _, ends := strings.Cut(end, ":"); ends && !strings.Contains(comment, reason) {
			t.Errorf("%s does not say that it ends with %s: %s", ex.name, reason, comment)
		}
		if end == "gone" && !strings.Contains(comment, "deleted") {
			t.Errorf("%s does not say that it is deleted: %s", ex.name, comment)
		}
	}
	if diff := cmp.Diff(there, run); diff != "" {
		t.Errorf("manifests (-there +run):\n%s", diff)
	}
}

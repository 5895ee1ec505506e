package kubectl

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// What check calls an error is what the API server's own strategies refuse, and they
// refuse nothing else of these files, which hold objects with and without errors.
func TestCheckAgreesWithTheAPIServer(t *testing.T) {
	for _, name := range []string{"mistakes.yaml", "made-names.yaml"} {
		file := filepath.Join("../../../services/internal/plugin/testdata", name)
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		if refused := compareWithTheAPIServer(t, file, strings.Split(string(data), "\n---\n")); refused == 0 {
			t.Errorf("the API server refuses nothing of %s", name)
		}
	}
}

// The same of objects that differ in one field from one that is fine.
func TestCheckAgreesAboutEachField(t *testing.T) {
	data, err := os.ReadFile("testdata/one-change.txt")
	must.Succeed(t, err)
	var docs []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			docs = append(docs, oneChange(t, strings.TrimSuffix(line, "\n")))
		}
	}
	file := filepath.Join(t.TempDir(), "changed.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(strings.Join(docs, "\n---\n")), 0o600))
	if refused := compareWithTheAPIServer(t, file, docs); refused < 100 || refused == len(docs) {
		t.Errorf("the API server refuses %d of %d", refused, len(docs))
	}
}

// oneChange is the object of a line of testdata/one-change.txt, as JSON, which is YAML, too.
func oneChange(t *testing.T, line string) string {
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
	must.Succeed(t, err)
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
	wrong := map[string]bool{}
	for _, f := range errorsIn(t, file) {
		if f.Check != "policy" { // To the API server an annotation is a text.
			wrong[f.Object] = true
		}
	}
	refused := 0
	for _, doc := range docs {
		var head metav1.PartialObjectMetadata
		must.Succeed(t, yaml.Unmarshal([]byte(doc), &head))
		name := head.Kind + "/" + head.Name
		problems := refuseAll(t, doc)
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

type finding struct {
	Object, Severity, Path, Text, Check string
	Line                                int
}

// errorsIn asks check.
func errorsIn(t *testing.T, file string) []finding {
	t.Helper()
	dir := buildPlugin(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-jobpolicy"), "check", "-f", file, "-o", "json").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("check: %v, want exit code 1\n%.3000s\n%s", err, out, exit.Stderr)
	}
	var answer struct{ Findings []finding }
	must.Succeed(t, json.Unmarshal(out, &answer))
	return slices.DeleteFunc(answer.Findings, func(f finding) bool { return f.Severity != "error" })
}

// linesWithErrors are the first errors by their lines.
func linesWithErrors(t *testing.T, file string) map[int]string {
	t.Helper()
	wrong := map[int]string{}
	for _, f := range errorsIn(t, file) {
		if wrong[f.Line] == "" {
			wrong[f.Line] = f.Path + ": " + f.Text
		}
	}
	return wrong
}

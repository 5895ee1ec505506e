package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Every alert fires when it should and stays silent otherwise. It needs promtool,
// which make promtool provides; make test says so where it is missing.
func TestAlerts(t *testing.T) {
	alerts, err := os.ReadFile(chartDir + "/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	testRules(t, "testdata/alerts_test.yaml", map[string][]byte{"alerts.yaml": alerts})
}

// Of two releases in a cluster, each with its alerts, the one whose executor is gone is missed.
func TestAlertsOfTwoReleases(t *testing.T) {
	rules := map[string][]byte{}
	for _, name := range []string{releaseName, "batch"} {
		values := map[string]any{"monitoring": map[string]any{"alerts": true}}
		objects := byKey(t)(Helm(chartDir, Release{Name: name, Namespace: name, Values: values}))
		for _, object := range objects {
			if object["kind"] != "PrometheusRule" {
				continue
			}
			text, err := yaml.Marshal(object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			rules[name+".yaml"] = text
		}
	}
	testRules(t, "testdata/two_releases_test.yaml", rules)
}

// testRules runs promtool's test on the files of rules, by their names in the test.
func testRules(t *testing.T, test string, rules map[string][]byte) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: make promtool")
	}
	text, err := os.ReadFile(test)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rules["test.yaml"] = text
	for name, text := range rules {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(promtool, "test", "rules", "test.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

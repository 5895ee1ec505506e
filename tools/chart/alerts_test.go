package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Every alert fires when it should and stays silent otherwise. It needs promtool,
// which make promtool provides; make test says so where it is missing.
func TestAlerts(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: make promtool")
	}
	dir := t.TempDir()
	for name, from := range map[string]string{"alerts.yaml": chartDir + "/files/alerts.yaml", "test.yaml": "testdata/alerts_test.yaml"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
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

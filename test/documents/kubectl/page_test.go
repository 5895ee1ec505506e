// Package kubectl runs the commands of docs/kubectl.md that need no cluster, and holds
// kubectl jobpolicy check against the API server's own validation, and simulate against the
// kubelet's own functions.
package kubectl

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/documents/guide"
)

// shim stands for kubectl, which runs a plugin like this.
const shim = "#!/bin/sh\nplugin=kubectl-$1; shift; exec \"$plugin\" \"$@\"\n"

// clusterSection holds what needs a cluster; package e2e tests that.
const clusterSection = "With a cluster"

func TestCommandsOfThePage(t *testing.T) {
	dir := buildPlugin(t)
	root, err := filepath.Abs("../../..")
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(shim), 0o755))
	steps, err := guide.Read(filepath.Join(root, "docs/kubectl.md"))
	must.Succeed(t, err)
	// Without a kubeconfig, so that no command finds a cluster.
	shell := guide.Shell{Dir: root, Env: append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG=/dev/null")}
	ran := 0
	for _, step := range steps {
		if step.Heading == clusterSection || step.Heading == "Install" {
			continue
		}
		ran++
		if _, err := shell.Run(t.Context(), step); err != nil {
			t.Errorf("docs/kubectl.md:%d: %v", step.Line, err)
		}
	}
	if ran == 0 {
		t.Error("no command was run")
	}
}

// buildPlugin returns a folder with the plugin.
func buildPlugin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "./services/cmd/kubectl-jobpolicy")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

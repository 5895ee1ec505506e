// Package specs runs Kubernetes' own end-to-end specs of Jobs, CronJobs and times to live on a cluster with real
// containers whose Jobs are run by this project's controllers, in place of the built-in ones.
package specs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
	"jobpolicy.dev/test/node/cluster/shared"
)

var (
	focus = flag.String("specs.focus", "", "run only specs whose name matches this `regexp`")
	by    = flag.String("specs.by", inPods, "what runs the Jobs: "+inPods+", "+asProcesses+" or "+builtIn)
)

func TestMain(m *testing.M) {
	flag.Parse()
	opts, err := options(*by)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(shared.Main(m, opts))
}

func TestKubernetesSpecs(t *testing.T) {
	requireImages(t)
	leaveNoVolumes(t)
	if *by == inPods {
		install(t)
	}
	args := []string{"--kubeconfig", shared.Cluster().Kubeconfig(), "--focus", *focus}
	if os.Getenv("JOBPOLICY_TEST_CLUSTER") == "all" { // make test-cluster ALL=1
		args = append(args, "--all")
	}
	runSpecs(t, args...)
}

// runSpecs shows the specs and their table as they come.
func runSpecs(t *testing.T, args ...string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), program(t), args...)
	run.Stdout, run.Stderr = os.Stdout, os.Stderr
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGINT) }
	run.WaitDelay = time.Minute
	if err := run.Run(); err != nil {
		t.Errorf("%s: %v; the table above says which spec failed", run, err)
	}
}

// program is the command that holds the specs; make test-cluster builds it.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(executables.MustDir(t), "kubernetes-specs")
}

// requireImages checks that the node has the images of the specs. Without them each spec would wait for its pods for
// a quarter of an hour.
func requireImages(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), "--images").Output()
	if err != nil {
		t.Fatalf("images of the specs: %v; make test-cluster builds the command", err)
	}
	nodes := objects.List(t, shared.Client().CoreV1().Nodes(), metav1.ListOptions{})
	var there []string
	for _, node := range nodes.Items {
		for _, image := range node.Status.Images {
			there = append(there, image.Names...)
		}
	}
	for image := range strings.FieldsSeq(string(out)) {
		if !slices.Contains(there, image) {
			t.Fatalf("the node has no image %s; it has %q", image, there)
		}
	}
}

// volumes is where the specs keep files of the node that outlive their pods.
const volumes = "/tmp/job-e2e"

// leaveNoVolumes deletes what the specs leave on this machine, which is the node. They never do.
func leaveNoVolumes(t *testing.T) {
	t.Helper()
	before, err := filepath.Glob(volumes + "/*")
	must.Succeed(t, err)
	t.Cleanup(func() {
		after, err := filepath.Glob(volumes + "/*")
		if err != nil {
			t.Error(err)
		}
		for _, dir := range after {
			if slices.Contains(before, dir) {
				continue
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		}
		_ = os.Remove(volumes) // if nothing else is in it
	})
}

// kubectl runs a command of the node's kubectl as the administrator.
func kubectl(ctx context.Context, dir string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(dir, "node", "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+shared.Cluster().Kubeconfig())
	return command.CombinedOutput()
}

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/cluster/shared"
)

// second is another cluster, started by another process as a person would.
type second struct {
	process    *exec.Cmd
	kubeconfig string
}

// startSecond waits until the cluster is ready.
func startSecond(t *testing.T, stateDir string) *second {
	t.Helper()
	dir := executables.MustDir(t)
	up := exec.Command(filepath.Join(dir, "jobpolicy-local"), "up", "--node=containers", "--state-dir="+stateDir)
	up.Stderr = os.Stderr
	output, err := up.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, up.Start())
	t.Cleanup(func() { up.Process.Kill(); up.Wait() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if kubeconfig, ok := strings.CutPrefix(lines.Text(), "export KUBECONFIG="); ok {
			return &second{up, kubeconfig}
		}
	}
	t.Fatalf("jobpolicy-local up: %v", up.Wait())
	return nil
}

// kubectl runs kubectl on the cluster.
func (s *second) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shared.Patience)
	defer cancel()
	output, err := kubectl(ctx, s.kubeconfig, args...)
	must.Succeed(t, err)
	return output
}

// end sends a signal and waits for the process.
func (s *second) end(t *testing.T, signal syscall.Signal) error {
	t.Helper()
	must.Succeed(t, s.process.Process.Signal(signal))
	return s.process.Wait()
}

// readFile returns the content of a file of a running cluster.
func readFile(t *testing.T, elem ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	must.Succeed(t, err)
	return text
}

// network is the network namespace of the cluster's processes, as the kernel
// names it.
func network(t *testing.T, stateDir string) string {
	t.Helper()
	name, err := os.Readlink("/proc/" + string(readFile(t, stateDir, "node", "first.pid")) + "/ns/net")
	must.Succeed(t, err)
	return name
}

// group is the control group of a running cluster.
func group(t *testing.T, stateDir string) string {
	t.Helper()
	var config struct{ Cgroup string }
	must.Succeed(t, json.Unmarshal(readFile(t, stateDir, "node", "namespaces.json"), &config))
	return config.Cgroup
}

// traces are what a cluster may leave on the machine.
type traces struct{ Mounts, Links, Networks, Groups []string }

// tracesOf finds what there is of a cluster. Links and named networks are all
// that there are: a cluster has none outside.
func tracesOf(t *testing.T, stateDir, group string) traces {
	t.Helper()
	var found traces
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must.Succeed(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, stateDir) {
			found.Mounts = append(found.Mounts, line)
		}
	}
	found.Links = names(t, "/sys/class/net/*")
	found.Networks = names(t, "/run/netns/*")
	found.Groups = names(t, "/sys/fs/cgroup/"+group, "/sys/fs/cgroup/*/"+group)
	return found
}

func names(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		must.Succeed(t, err)
		all = append(all, found...)
	}
	return all
}

// processesIn lists the processes in a network namespace.
func processesIn(network string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && name == network {
			found = append(found, link)
		}
	}
	return found
}

// TestClustersSideBySideAndWhatTheyLeave starts another cluster beside the
// shared one, which has the same addresses inside.
func TestClustersSideBySideAndWhatTheyLeave(t *testing.T) {
	namespace := shared.Namespace(t)
	create(t, namespace, job("stays", "busybox", "sleep", "3600"))
	stays := podOf(t, namespace, "stays", runs)

	stateDir := filepath.Join(t.TempDir(), "s")
	before := tracesOf(t, stateDir, "none")
	up := startSecond(t, stateDir)
	up.kubectl(t, "create", "job", "sleeps", "--image=busybox", "--", "sleep", "3600")
	up.kubectl(t, "wait", "--for=jsonpath={.status.ready}=1", "job/sleeps", "--timeout=2m")
	if pods := up.kubectl(t, "get", "pods", "-A", "-o", "name"); strings.Count(pods, "\n") != 1 {
		t.Errorf("the pods of the second cluster are %q, want one", pods)
	}

	inside, group := network(t, stateDir), group(t, stateDir)
	if len(processesIn(inside)) < 8 {
		t.Fatalf("only %d processes in the cluster's network: the test looks at the wrong one", len(processesIn(inside)))
	}
	up.end(t, syscall.SIGKILL)
	shared.Eventually(t, "the end of every process of a killed cluster", func() error {
		if left := processesIn(inside); len(left) > 0 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
	killed := tracesOf(t, stateDir, group)
	if len(killed.Groups) == 0 {
		t.Error("the killed cluster left no control groups: the last check checks nothing")
	}
	killed.Groups = nil // these are the next start's business
	if diff := cmp.Diff(before, killed); diff != "" {
		t.Errorf("traces of a killed cluster (-before +after):\n%s", diff)
	}

	// What the first one left must not be in its successor's way, nor outlive it.
	up = startSecond(t, stateDir)
	if jobs := up.kubectl(t, "get", "jobs", "-A", "-o", "name"); jobs != "" {
		t.Errorf("the new cluster has the Jobs %q", jobs)
	}
	if err := up.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("the cluster does not stop well: %v", err)
	}
	if diff := cmp.Diff(before, tracesOf(t, stateDir, group)); diff != "" {
		t.Errorf("traces of a stopped cluster (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(stateDir); !os.IsNotExist(err) {
		t.Errorf("the state directory is still there: %v", err)
	}

	// None of it may have touched the other cluster.
	now := podOf(t, namespace, "stays", runs)
	if now.Status.ContainerStatuses[0].RestartCount != 0 || now.UID != stays.UID {
		t.Errorf("the shared cluster's pod is not what it was: %v", now.Status)
	}
}

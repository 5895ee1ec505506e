package operate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/documents/guide"
	"jobpolicy.dev/test/node/cluster/shared"
)

const (
	release  = "jobpolicy-system" // the namespace of the release
	executor = "jobpolicy-executor"
)

// kubectl runs a command in the same way as the page's commands.
func kubectl(ctx context.Context, command string) error {
	return script(ctx, "kubectl "+command)
}

// script runs a bash script in the same way as the page's commands.
func script(ctx context.Context, text string) error {
	env, err := environment()
	if err != nil {
		return err
	}
	_, err = guide.Shell{Dir: top, Env: env}.Run(ctx, guide.Step{Command: text})
	return err
}

// mixVersions gives the executor the next version while the engine still has the old
// one, and lets both work for a while.
func mixVersions(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, command := range []string{
		"-n " + release + " set image --field-manager=helm deployment/" + executor + " executor=jobpolicy.dev/" + executor + ":" + nextTag,
		"-n " + release + " rollout status deployment/" + executor,
	} {
		must.Succeed(t, kubectl(ctx, command))
	}
	sleep(t, 5*time.Second)
}

// podsOf returns the pods of a component of the release.
func podsOf(ctx context.Context, client kubernetes.Interface, component string) ([]corev1.Pod, error) {
	list, err := client.CoreV1().Pods(release).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// leader returns the pod that holds the executor's lease.
func leader(ctx context.Context, client kubernetes.Interface) (*corev1.Pod, error) {
	lease, err := client.CoordinationV1().Leases(release).Get(ctx, executor, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if lease.Spec.HolderIdentity == nil {
		return nil, fmt.Errorf("nobody holds the lease %s", executor)
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return client.CoreV1().Pods(release).Get(ctx, name, metav1.GetOptions{})
}

// signalPod sends a signal to the program in a pod from outside the cluster. It finds
// the program by the control group, whose name contains the pod's UID.
func signalPod(pod *corev1.Pod, signal syscall.Signal) error {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return err
	}
	found := false
	for _, file := range files {
		dir := filepath.Dir(file)
		groups, _ := os.ReadFile(file)
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !bytes.Contains(groups, []byte(pod.UID)) || !bytes.HasPrefix(command, []byte("/jobpolicy-")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, signal); err != nil {
			return fmt.Errorf("signal %s to pod %s: %w", signal, pod.Name, err)
		}
		found = true
	}
	if !found {
		return fmt.Errorf("pod %s has no process", pod.Name)
	}
	return nil
}

// killAndFreeze does what no command of the page can do: it sends SIGKILL to programs
// of pods, and SIGSTOP to the leader until another pod leads.
func killAndFreeze(finish func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		for _, component := range []string{"engine", "executor"} {
			pods, err := podsOf(t.Context(), shared.Client(), component)
			must.Succeed(t, err)
			for i := range pods {
				t.Logf("kill the program in %s", pods[i].Name)
				must.Succeed(t, signalPod(&pods[i], syscall.SIGKILL))
				sleep(t, 3*time.Second)
			}
		}
		rolledOut(t)
		freezeLeader(t)
		drain(t)
		finish(t)
	}
}

func rolledOut(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Succeed(t, kubectl(ctx, "-n "+release+" rollout status deployment -l app.kubernetes.io/instance=jobpolicy"))
}

func freezeLeader(t *testing.T) {
	t.Helper()
	var first *corev1.Pod
	// A pod holds its lease for a while after its program was killed.
	eventually(t, "a pod leads, and its program can be frozen", func(ctx context.Context) (err error) {
		if first, err = leader(ctx, shared.Client()); err != nil {
			return err
		}
		return signalPod(first, syscall.SIGSTOP)
	})
	t.Logf("%s is frozen", first.Name)
	eventually(t, "another pod leads", func(ctx context.Context) error {
		now, err := leader(ctx, shared.Client())
		if err == nil && now.UID == first.UID {
			err = fmt.Errorf("%s still leads", now.Name)
		}
		return err
	})
	// The kubelet may have replaced the container meanwhile.
	if err := signalPod(first, syscall.SIGCONT); err != nil {
		t.Log(err)
	}
	renew(t)
}

// renew replaces every pod of the release. A pod whose program was killed or frozen
// counts as ready until a probe says otherwise, and the budgets believe it.
func renew(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Succeed(t, kubectl(ctx, "-n "+release+" rollout restart deployment -l app.kubernetes.io/instance=jobpolicy"))
	rolledOut(t)
}

// drain evicts every pod of the release from the only node. The budgets let one pod of
// each component go at a time, and the next when its replacement is ready, so the node
// must accept new pods.
func drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	drained := make(chan error, 1)
	go func() {
		drained <- kubectl(ctx, "drain local --ignore-daemonsets --force --pod-selector=app.kubernetes.io/instance=jobpolicy --timeout=9m")
	}()
	uncordon := time.NewTicker(2 * time.Second)
	defer uncordon.Stop()
	for {
		select {
		case err := <-drained:
			if err != nil {
				t.Fatal(err)
			}
			if err := kubectl(ctx, "uncordon local"); err != nil {
				t.Fatal(err)
			}
			rolledOut(t)
			return
		case <-uncordon.C:
			if err := kubectl(ctx, "uncordon local"); err != nil {
				t.Fatal(err)
			}
			checkOneOfEach(t)
		}
	}
}

// checkOneOfEach: a drain leaves a pod of each that runs and is not on its way out, at any time.
func checkOneOfEach(t *testing.T) {
	t.Helper()
	for _, component := range []string{"engine", "executor"} {
		pods, err := podsOf(t.Context(), shared.Client(), component)
		must.Succeed(t, err)
		stays := func(pod corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
		}
		if !slices.ContainsFunc(pods, stays) {
			t.Errorf("no %s runs while the node is drained", component)
		}
	}
}

func eventually(t *testing.T, what string, is func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = is(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v, at last: %v", what, err, last)
	}
}

// nothingIsLeft checks that after the page's last command no object names the
// release, in the whole cluster.
func nothingIsLeft(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Objects of the local cluster itself are named jobpolicy-local. Some resources
	// cannot be listed in all namespaces; kubectl says so and lists the others.
	err := script(ctx, `
		objects=$(kubectl api-resources --verbs=list -o name | xargs -n1 kubectl get -A -o name --ignore-not-found 2>/dev/null || true)
		grep -q namespace/default <<< "$objects"
		! grep -v jobpolicy-local <<< "$objects" | grep jobpolicy`)
	if err != nil {
		t.Error(err)
	}
}

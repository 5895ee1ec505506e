package hostnode

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/deploy/local/must"
)

// startAgent runs an agent with a status writer against a fake API server until the test ends, or stop is called.
func startAgent(t *testing.T, client *fake.Clientset) (a *agent, stop func()) {
	t.Helper()
	r := newTestRunner(t)
	must.Succeed(t, os.MkdirAll(r.layout.pods(), 0o755))
	logger := slog.New(slog.DiscardHandler)
	statuses := newStatusWriter(client, logger)
	a = newAgent(client, "local", podDeps{
		runner: r, statuses: statuses, events: &ledger{},
		backoff: crashBackoff{base: time.Millisecond, max: time.Second}, logger: logger,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { statuses.run(ctx); done <- nil }()
	go func() { done <- a.run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range 2 {
			if err := receive(t, done, "end of the agent"); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return a, stop
}

func awaitPhase(t *testing.T, client *fake.Clientset, name string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, name+" is "+string(phase), func() bool {
		var err error
		pod, err = client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == phase
	})
	return pod
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAgentRunsPodsAndCleansUpWhenTheyAreGone(t *testing.T) {
	client := fake.NewClientset(podObject("first", "u-1", shell("c", "exit 0")))
	a, _ := startAgent(t, client)
	awaitPhase(t, client, "first", corev1.PodSucceeded)
	if _, err := client.CoreV1().Pods("ns").Create(t.Context(), podObject("second", "u-2", shell("c", "exit 1")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, client, "second", corev1.PodFailed)
	dir := a.runner.layout.pod("u-1")
	if !exists(t, dir) {
		t.Fatal("the directory went before the pod")
	}
	must.Succeed(t, client.CoreV1().Pods("ns").Delete(t.Context(), "first", metav1.DeleteOptions{}))
	eventually(t, "the directory is removed", func() bool { return !exists(t, dir) })
	eventually(t, "the worker is gone", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.workers["u-1"] == nil && a.workers["u-2"] != nil
	})
}

func TestAgentTellsPodsOfOneNameApart(t *testing.T) {
	client := fake.NewClientset()
	a, _ := startAgent(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old := podObject("p", "u-old", shell("c", "echo up; exec sleep 1000"))
	a.see(ctx, old)
	path := a.runner.layout.log("u-old", "c", 0)
	eventually(t, "the old pod runs", func() bool { return exists(t, path) })
	old = old.DeepCopy()
	old.DeletionGracePeriodSeconds = new(int64(0))
	a.replace(ctx, old, podObject("p", "u-new", shell("c", "exec sleep 1000")))
	eventually(t, "the old pod's processes and files are gone", func() bool { return !exists(t, a.runner.layout.pod("u-old")) })
	eventually(t, "only the new pod has a worker", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.workers["u-old"] == nil && a.workers["u-new"] != nil
	})
}

func TestAgentRemovesDirectoriesOfPodsThatWentUnseen(t *testing.T) {
	client := fake.NewClientset(podObject("p", "u-1", shell("c", "exec sleep 1000")))
	r := newTestRunner(t)
	for _, uid := range []types.UID{"u-1", "u-gone"} {
		must.Succeed(t, os.MkdirAll(r.layout.pod(uid), 0o755))
	}
	a := newAgent(client, "local", podDeps{runner: r, statuses: &ledger{}, events: &ledger{}, logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.run(ctx) }()
	eventually(t, "the stray directory is removed", func() bool { return !exists(t, r.layout.pod("u-gone")) })
	if !exists(t, r.layout.pod("u-1")) {
		t.Error("the directory of a pod that is there was removed")
	}
	cancel()
	if err := receive(t, done, "end of the agent"); err != nil {
		t.Error(err)
	}
}

func TestStoppedAgentLeavesStatusesAndTheNextOneTakesThemUp(t *testing.T) {
	onFailurePod := podObject("again", "u-1", shell("c", `[ -e "$JOBPOLICY_POD_DIR/ran" ] && exit 0; touch $JOBPOLICY_POD_DIR/ran; exec sleep 1000`))
	onFailurePod.Spec.RestartPolicy = onFailure
	client := fake.NewClientset(onFailurePod, podObject("once", "u-2", shell("c", "exec sleep 1000")))
	first, stop := startAgent(t, client)
	awaitPhase(t, client, "again", corev1.PodRunning)
	awaitPhase(t, client, "once", corev1.PodRunning)
	eventually(t, "the first run is noted", func() bool { return exists(t, first.runner.layout.pod("u-1")+"/ran") })
	stop()
	for _, name := range []string{"again", "once"} {
		awaitPhase(t, client, name, corev1.PodRunning) // nothing was reported on the way out
	}

	second := newAgent(client, "local", first.podDeps)
	second.statuses = newStatusWriter(client, first.logger)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go second.statuses.(*statusWriter).run(ctx)
	go func() { done <- second.run(ctx) }()
	again := awaitPhase(t, client, "again", corev1.PodSucceeded).Status.ContainerStatuses[0]
	if got, want := describe(again), "c terminated Completed 0, last terminated ContainerStatusUnknown 137, 1 restarts"; got != want {
		t.Errorf("restarted container is %q, want %q", got, want)
	}
	once := awaitPhase(t, client, "once", corev1.PodFailed).Status.ContainerStatuses[0]
	if got, want := describe(once), "c terminated ContainerStatusUnknown 137"; got != want {
		t.Errorf("lost container is %q, want %q", got, want)
	}
	cancel()
	if err := receive(t, done, "end of the agent"); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// The control plane that the tests share: etcd, API server, scheduler, node and engine.
var (
	plane     *cluster.Cluster
	trainings dynamic.ResourceInterface
	pods      interface {
		List(context.Context, metav1.ListOptions) (*corev1.PodList, error)
	}
)

// The test binary is the program, too.
func TestMain(m *testing.M) {
	if os.Getenv("TRAINING_MAIN") != "" {
		main()
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "training:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	binaries, err := executables.Dir()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "jobpolicy-training-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	plane, err = cluster.Start(ctx, cluster.Options{
		StateDir: filepath.Join(dir, "state"), BinDir: binaries, WithoutExecutor: true,
		Progress: func(p cluster.Progress) { fmt.Fprintln(os.Stderr, p) },
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := plane.Stop(ctx); err == nil {
			err = stopErr
		}
	}()
	client := dynamic.NewForConfigOrDie(plane.RESTConfig())
	trainings = client.Resource(resource).Namespace("default")
	pods = kubernetes.NewForConfigOrDie(plane.RESTConfig()).CoreV1().Pods("default")
	if err := define(ctx, client); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// define puts the custom resource into the cluster, and waits until it is served.
func define(ctx context.Context, client dynamic.Interface) error {
	crd, err := os.ReadFile("crd.yaml")
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd, &object.Object); err != nil {
		return err
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	for deadline := time.Now().Add(controlplane.Patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err = trainings.List(ctx, metav1.ListOptions{}); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// Of a group in these tests.
const (
	once   = `backoffLimit: 0`
	policy = `podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}`
)

func group(name string, completions int, more, script string) string {
	return fmt.Sprintf(`  - name: %s
    job:
      completions: %d
      parallelism: %d
      %s
      template:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 1
          containers: [{name: main, image: none, command: [sh, -c, %q]}]
`, name, completions, completions, more, script)
}

func TestTrainings(t *testing.T) {
	start(t)
	dir := t.TempDir()
	cases := map[string]struct {
		spec         string
		wantPhase    string
		wantMessage  string // Its beginning.
		wantRestarts int32
		// The numbers of pods that succeeded and failed, by group.
		wantCounts map[string][2]int32
	}{
		"all-groups": {
			spec:      "  groups:\n" + group("leader", 1, once, "true") + group("workers", 3, once, "test $JOB_COMPLETION_INDEX -lt 3"),
			wantPhase: "Complete", wantCounts: map[string][2]int32{"leader": {1, 0}, "workers": {3, 0}},
		},
		"the-leader-decides": {
			spec:      "  successPolicy: {groups: [leader]}\n  groups:\n" + group("leader", 1, once, "true") + group("workers", 2, once, "exec sleep 1000"),
			wantPhase: "Complete", wantCounts: map[string][2]int32{"leader": {1, 0}, "workers": {0, 0}},
		},
		"a-pod-is-tried-again": {
			spec: "  groups:\n" + group("workers", 2, "backoffLimit: 1",
				"test $JOB_COMPLETION_INDEX = 0 || test -e "+dir+"/again || { touch "+dir+"/again; exit 1; }"),
			wantPhase: "Complete", wantCounts: map[string][2]int32{"workers": {2, 1}},
		},
		"all-start-again": {
			spec: "  failurePolicy: {maxRestarts: 2}\n  groups:\n" + group("leader", 1, once, "test -e "+dir+"/restarted || { touch "+dir+"/restarted; exit 1; }") +
				group("workers", 2, once, "test -e "+dir+"/restarted || exec sleep 1000"),
			wantPhase: "Complete", wantMessage: "group leader: BackoffLimitExceeded: ", wantRestarts: 1,
			wantCounts: map[string][2]int32{"leader": {1, 0}, "workers": {2, 0}},
		},
		"restarts-are-limited": {
			spec:      "  failurePolicy: {maxRestarts: 1}\n  groups:\n" + group("leader", 1, once, "exit 1") + group("workers", 2, once, "exec sleep 1000"),
			wantPhase: "Failed", wantMessage: "group leader: BackoffLimitExceeded: ", wantRestarts: 1,
			wantCounts: map[string][2]int32{"leader": {0, 1}, "workers": {0, 0}},
		},
		"a-reason-to-fail": {
			spec: "  failurePolicy: {maxRestarts: 5, failReasons: [PodFailurePolicy]}\n  groups:\n" + group("leader", 1, once, "exec sleep 1000") +
				group("workers", 2, policy, "test $JOB_COMPLETION_INDEX = 0 && exit 42; exec sleep 1000"),
			wantPhase: "Failed", wantMessage: "group workers: PodFailurePolicy: Container main for pod default/",
			wantCounts: map[string][2]int32{"leader": {0, 0}, "workers": {0, 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			create(t, name, tc.spec)
			got := await(t, name, "over", func(got *Training) bool { return got.Status.Phase != "" })
			if got.Status.Phase != tc.wantPhase || got.Status.Restarts != tc.wantRestarts || !strings.HasPrefix(got.Status.Message, tc.wantMessage) {
				t.Errorf("%s, %d restarts, %q; want %s, %d, %q", got.Status.Phase, got.Status.Restarts, got.Status.Message, tc.wantPhase, tc.wantRestarts, tc.wantMessage)
			}
			await(t, name, "at rest, with these counts: "+fmt.Sprint(tc.wantCounts), func(got *Training) bool {
				for name, want := range tc.wantCounts {
					if s := got.Status.Groups[name]; s.Active != 0 || *s.Terminating != 0 || s.Succeeded != want[0] || s.Failed != want[1] || len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) != 0 {
						return false
					}
				}
				return noneHeld(t, name)
			})
		})
	}
}

// A controller that is killed in the middle counts each pod once when it comes again,
// and releases the pods of a Training that was deleted meanwhile.
func TestKilled(t *testing.T) {
	first := start(t)
	dir := t.TempDir()
	create(t, "goes-on", "  groups:\n"+group("workers", 3, once, "test $JOB_COMPLETION_INDEX = 0 || until test -e "+dir+"/go; do sleep 0.1; done"))
	create(t, "is-deleted", "  groups:\n"+group("workers", 2, once, "exec sleep 1000"))
	await(t, "goes-on", "has a pod that succeeded", func(got *Training) bool { return got.Status.Groups["workers"].Succeeded == 1 })
	await(t, "is-deleted", "runs", func(got *Training) bool { return got.Status.Groups["workers"].Active == 2 })
	_ = first.Process.Kill()
	_ = first.Wait()
	if err := trainings.Delete(t.Context(), "is-deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, "the pods end while no controller runs", func() (bool, string) {
		n := 0
		for _, pod := range list(t, "goes-on") {
			if pod.Status.Phase == corev1.PodSucceeded {
				n++
			}
		}
		return n == 3, fmt.Sprint(n, " of 3")
	})
	start(t)
	await(t, "goes-on", "Complete, 3 pods counted once", func(got *Training) bool {
		return got.Status.Phase == "Complete" && got.Status.Groups["workers"].Succeeded == 3 && noneHeld(t, "goes-on")
	})
	controlplane.Eventually(t, "the pods of the deleted Training are gone", func() (bool, string) {
		n := len(list(t, "is-deleted"))
		return n == 0, fmt.Sprint(n, " are left")
	})
}

// A Training that cannot be read keeps its pods, and does not stop the others. The API server
// checks neither the pod template nor the status.
func TestATrainingThatCannotBeRead(t *testing.T) {
	start(t)
	create(t, "bad-spec", "  groups:\n  - {name: workers, job: {completions: 1, template: none}}\n")
	create(t, "bad-status", "  groups:\n"+group("workers", 1, once, "exec sleep 1000"))
	await(t, "bad-status", "runs", func(got *Training) bool { return got.Status.Groups["workers"].Active == 1 })
	if _, err := trainings.Patch(t.Context(), "bad-status", types.MergePatchType, []byte(`{"status":{"restarts":"many"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	create(t, "beside-bad-ones", "  groups:\n"+group("workers", 1, once, "true"))
	await(t, "beside-bad-ones", "Complete", func(got *Training) bool { return got.Status.Phase == "Complete" })
	if kept := list(t, "bad-status"); len(kept) != 1 || kept[0].DeletionTimestamp != nil {
		t.Errorf("the Training that cannot be read has %d pods, want the one that runs", len(kept))
	}
	deleteAll(t)
	controlplane.Eventually(t, "the pods of the deleted Training are gone", func() (bool, string) {
		n := len(list(t, "bad-status"))
		return n == 0, fmt.Sprint(n, " are left")
	})
}

// start starts the program, and stops it when the test ends.
func start(t *testing.T) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	keys := plane.EnginePKI()
	for name, file := range map[string]string{"ca.crt": keys.CAFile, "tls.crt": keys.CertFile, "tls.key": keys.KeyFile} {
		if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "--kubeconfig="+plane.Kubeconfig(), "--engine=dns:///"+plane.EngineAddress(), "--certificates="+dir, "--retry-delay=1s")
	cmd.Env, cmd.Stderr = append(os.Environ(), "TRAINING_MAIN=1"), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func create(t *testing.T, name, spec string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: example.jobpolicy.dev/v1\nkind: Training\nmetadata: {name: %s}\nspec:\n%s", name, spec)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if _, err := trainings.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// deleteAll deletes the Trainings of earlier tests.
func deleteAll(t *testing.T) {
	t.Helper()
	if err := trainings.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, "no Training is left", func() (bool, string) {
		all, err := trainings.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return len(all.Items) == 0, fmt.Sprint(len(all.Items), " are left")
	})
}

// await waits until a Training is as wanted.
func await(t *testing.T, name, what string, done func(*Training) bool) *Training {
	t.Helper()
	var got *Training
	controlplane.Eventually(t, name+" is "+what, func() (bool, string) {
		object, err := trainings.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got = &Training{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, got); err != nil {
			t.Fatal(err)
		}
		return done(got), fmt.Sprintf("%+v", got.Status)
	})
	return got
}

// noneHeld reports whether all pods of a Training are released.
func noneHeld(t *testing.T, training string) bool {
	return !slices.ContainsFunc(list(t, training), func(pod corev1.Pod) bool { return len(pod.Finalizers) > 0 })
}

func list(t *testing.T, training string) (of []corev1.Pod) {
	t.Helper()
	all, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, pod := range all.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owner.Name == training {
			of = append(of, pod)
		}
	}
	return of
}

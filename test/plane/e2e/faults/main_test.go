package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// The one control plane that all tests share. It has no executor and no node: tests
// start an executor, and simulate the node.
var (
	plane    *cluster.Cluster
	client   *kubernetes.Clientset
	rights   *rest.Config // The executor's.
	binaries string
)

const patience = controlplane.Patience

// parallelTests is how many tests run at the same time. They mostly wait.
const parallelTests = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		return 1, err
	}
	if binaries, err = executables.Dir(); err != nil {
		return 1, err
	}
	stateDir, err := os.MkdirTemp("", "jobpolicy-faults-")
	if err != nil {
		return 1, err
	}
	plane, err = cluster.Start(context.Background(), cluster.Options{
		StateDir: stateDir, BinDir: binaries,
		WithoutEngine: true, WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller,namespace-controller",
		// Pods have no service accounts, which the tests would have to wait for in
		// every namespace.
		ExtraArgs: map[string][]string{cluster.APIServer: {"--disable-admission-plugins=ServiceAccount"}},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := plane.Stop(context.Background()); err == nil {
			err = stopErr
		}
	}()
	if client, err = kubernetes.NewForConfig(plane.RESTConfig()); err != nil {
		return 1, err
	}
	kubeconfig := filepath.Join(plane.StateDir(), "kubeconfigs", cluster.Executor+".kubeconfig")
	if rights, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

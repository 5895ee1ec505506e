// Package shared starts one cluster with real containers for all tests of a
// package:
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m, cluster.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		client, namespace := shared.Client(), shared.Namespace(t)
//		…
//
// Such a cluster needs root and what `make build-node` builds, and takes a
// while. So the tests run only where JOBPOLICY_TEST_CLUSTER says so, as `make
// test-cluster` does; elsewhere, they say that they did not run. Where it says
// so and the machine cannot run a cluster, they fail.
package shared

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
)

// askedFor is the variable of the environment that asks for these tests.
const askedFor = "JOBPOLICY_TEST_CLUSTER"

// Patience bounds the wait for anything.
const Patience = controlplane.Patience

// running is the cluster of this package's tests.
var running *cluster.Cluster

// Main starts a cluster, runs the tests and stops it. It returns the exit code.
// StateDir, BinDir, Node and Progress of opts are filled in where they are empty.
func Main(m *testing.M, opts cluster.Options) int {
	if os.Getenv(askedFor) == "" {
		fmt.Fprintf(os.Stderr, "NOT RUN: tests on a cluster with real containers; make test-cluster runs them\n")
		return 0
	}
	code, err := run(m, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster with real containers: %v\n", err)
		return 1
	}
	return code
}

func run(m *testing.M, opts cluster.Options) (code int, err error) {
	opts, err = Complete(opts)
	if err != nil {
		return 1, err
	}
	running, err = cluster.Start(context.Background(), opts)
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := running.Stop(context.Background()); err == nil {
			err = stopErr
		}
	}()
	return m.Run(), nil
}

// Complete fills in what every cluster with real containers needs, as [Main]
// does, for a test that starts one of its own.
func Complete(opts cluster.Options) (cluster.Options, error) {
	var err error
	opts.Node = cluster.Containers
	if opts.BinDir == "" {
		if opts.BinDir, err = executables.Dir(); err != nil {
			return opts, err
		}
	}
	if opts.StateDir == "" {
		if opts.StateDir, err = os.MkdirTemp("", "jobpolicy-cluster-"); err != nil {
			return opts, err
		}
	}
	if opts.Progress == nil {
		opts.Progress = func(p cluster.Progress) { fmt.Fprintln(os.Stderr, p) }
	}
	return opts, nil
}

// Cluster is the cluster that [Main] has started.
func Cluster() *cluster.Cluster { return running }

// Client returns a client with all rights.
func Client() kubernetes.Interface { return kubernetes.NewForConfigOrDie(running.RESTConfig()) }

// Load makes the images in a tar archive known to the node.
func Load(t *testing.T, file string) {
	t.Helper()
	must.Succeed(t, running.LoadImage(t.Context(), file))
}

// Namespace makes a namespace for the test, with the service account that pods
// run as, and deletes it at its end.
func Namespace(t *testing.T) string {
	t.Helper()
	name := "test-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	CreateNamespace(t, name)
	t.Cleanup(func() {
		if err := Client().CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return name
}

// CreateNamespace makes a namespace, and waits for the service account that pods run as.
func CreateNamespace(t *testing.T, name string) {
	t.Helper()
	client := Client()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	objects.Create(t, client.CoreV1().Namespaces(), namespace)
	Eventually(t, "the service account of namespace "+name, func() error {
		_, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// Eventually waits until ask returns nil. What names what is waited for.
func Eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	controlplane.Eventually(t, what, func() (bool, string) {
		err := ask()
		return err == nil, fmt.Sprint(err)
	})
}

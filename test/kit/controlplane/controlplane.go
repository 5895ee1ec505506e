// Package controlplane starts a control plane for one test, and waits for what happens on it.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
)

// Minor is the minor version of Kubernetes that JOBPOLICY_KUBERNETES asks for, for example 34 if it is
// "1.34". 0: that of jobpolicy-local. deploy/local/build-version.sh builds the others.
func Minor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(os.Getenv("JOBPOLICY_KUBERNETES"), "1."))
	if err != nil {
		return 0
	}
	return minor
}

// KubernetesDir is the cluster.Options.KubernetesDir of that minor version.
func KubernetesDir(binaries string) string {
	if Minor() == 0 {
		return ""
	}
	return filepath.Join(binaries, "olderminors", "1."+strconv.Itoa(Minor()))
}

// Start starts a control plane, and stops it when the test ends. It fills in StateDir, BinDir and
// KubernetesDir.
func Start(t *testing.T, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	opts.StateDir, opts.BinDir = t.TempDir(), executables.MustDir(t)
	opts.KubernetesDir = KubernetesDir(opts.BinDir)
	plane, err := cluster.Start(t.Context(), opts)
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return plane
}

// Patience bounds the wait for anything. Machines may be slow; a test that waits this long has failed.
const Patience = 3 * time.Minute

// Eventually waits until done reports ok. If that takes longer than Patience, the test fails with the last state.
func Eventually(t testing.TB, what string, done func() (ok bool, state string)) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(30 * time.Millisecond) {
		ok, state := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s; last state: %s", what, Patience, state)
		}
	}
}

// MakeNamespace makes a namespace in which pods can be created: it has its service account.
func MakeNamespace(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	objects.Create(t, client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	AwaitServiceAccount(t, client, name)
}

// AwaitServiceAccount waits until pods can be created in a namespace.
func AwaitServiceAccount(t testing.TB, client kubernetes.Interface, namespace string) {
	t.Helper()
	Eventually(t, "namespace "+namespace+" has its service account", func() (bool, string) {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// DeleteNamespace deletes a namespace, also when the test has ended, and waits until it is gone.
func DeleteNamespace(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	ctx, namespaces := context.WithoutCancel(t.Context()), client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete namespace: %v", err)
		return
	}
	Eventually(t, "namespace "+name+" is gone", func() (bool, string) {
		now, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		return false, fmt.Sprintf("%v %v", now.Status.Conditions, err)
	})
}

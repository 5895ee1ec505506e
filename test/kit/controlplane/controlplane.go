// Package controlplane starts a control plane for one test, and waits for what happens on it.
package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
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

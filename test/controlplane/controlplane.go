// Package controlplane starts a control plane for one test.
package controlplane

import (
	"context"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/executables"
)

// Start starts a control plane, and stops it when the test ends. It fills in StateDir and BinDir.
func Start(t *testing.T, opts cluster.Options) *cluster.Cluster {
	t.Helper()
	opts.StateDir, opts.BinDir = t.TempDir(), executables.MustDir(t)
	plane, err := cluster.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return plane
}

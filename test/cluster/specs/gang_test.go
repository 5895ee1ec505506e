package specs

import (
	"context"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/cluster/shared"
	"jobpolicy.dev/test/executables"
)

// The spec of gangs needs feature gates that are off by default. It needs no containers, so that a cluster that runs
// processes, with these gates, is enough.
func TestKubernetesSpecOfGangs(t *testing.T) {
	const gates = "GenericWorkload,WorkloadWithJob"
	plane, err := cluster.Start(t.Context(), cluster.Options{
		StateDir: t.TempDir(),
		BinDir:   executables.MustDir(t),
		ExtraArgs: map[string][]string{
			cluster.APIServer: {"--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true"},
			cluster.Scheduler: {"--feature-gates=GenericWorkload=true,GangScheduling=true"},
			cluster.Executor:  {"--feature-gates=WorkloadWithJob=true"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shared.Patience)
		defer cancel()
		if err := plane.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	runSpecs(t, "--kubeconfig", plane.Kubeconfig(), "--feature-gates", gates, "--focus", "gang-eligible")
}

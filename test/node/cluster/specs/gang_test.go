package specs

import (
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
)

// The specs of gangs need feature gates that are off by default. They need no containers, so that a cluster that runs
// processes, with these gates, is enough.
func TestKubernetesSpecOfGangs(t *testing.T) {
	const gates = "GenericWorkload,WorkloadWithJob"
	plane := controlplane.Start(t, cluster.Options{
		ExtraArgs: map[string][]string{
			cluster.APIServer: {"--feature-gates=GenericWorkload=true,WorkloadWithJob=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"},
			cluster.Scheduler: {"--feature-gates=GenericWorkload=true,WorkloadWithJob=true"},
			cluster.Executor:  {"--feature-gates=WorkloadWithJob=true"},
		},
	})
	runSpecs(t, "--kubeconfig", plane.Kubeconfig(), "--feature-gates", gates, "--focus", "Workload and PodGroup")
}

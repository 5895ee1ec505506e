package clients

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
)

// multikueue is Kueue on two control planes. Jobs of the first one, the manager, run on the second one, the worker. Both have the
// same side, and both are recorded.
var multikueue = client{
	name:    "multikueue",
	needs:   []string{"kubectl", "kueue"},
	objects: []schema.GroupVersionResource{resource("kueue.x-k8s.io", "v1beta2", "workloads")},
}

// twoClusters is the rest of the configuration of both managers.
const twoClusters = `
leaderElection: {leaderElect: false}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job]}
multiKueue: {gcInterval: 5s, workerLostTimeout: 5m}
`

func TestMultiKueue(t *testing.T) {
	multikueue.check(t, len(multikueue.scenarios(t)) > 0)
	c := multikueue
	c.worker = startPlane(t)
	prepareKueueAlone(t, c.worker, twoClusters).start(t, c.worker)
	c.install = func(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
		t.Helper()
		// Kueue reads how to reach the worker from a Secret in this namespace.
		makeNamespace(t, kubernetes.NewForConfigOrDie(plane.RESTConfig()), "kueue-system")
		prepareKueueAlone(t, plane, twoClusters).start(t, plane)
		return func(t *testing.T, s side) { s.takeOver(t, c.worker) }
	}
	compare(t, c)
}

package clients

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
)

// kueueAlone is Kueue without JobSet and Trainer. It shares fairly, and waits for no pods to be ready: with many Jobs on a busy
// machine that takes longer than the timeouts of the other scenarios.
var kueueAlone = client{
	name:    "kueue-alone",
	needs:   []string{"kubectl", "kueue"},
	objects: []schema.GroupVersionResource{resource("kueue.x-k8s.io", "v1beta2", "workloads")},
	alone:   []string{"burst-300"},
	install: func(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
		t.Helper()
		prepareKueueAlone(t, plane, sharingFairly).start(t, plane)
		return nil
	},
}

// sharingFairly is the rest of its configuration.
const sharingFairly = `
leaderElection: {leaderElect: false}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job]}
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
`

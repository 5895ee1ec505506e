package clients

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/test/kit/certificates"
	"jobpolicy.dev/test/plane/clients/history"
)

// keda makes as many Jobs as its scaler says that messages wait.
var keda = client{
	name:    "keda",
	needs:   []string{"kubectl", "keda"},
	objects: []schema.GroupVersionResource{resource("keda.sh", "v1alpha1", "scaledjobs")},
	here:    true,
	install: installKEDA,
}

// installKEDA starts the scaler, whose address scenarios find in KEDA_SCALER, and KEDA's operator.
func installKEDA(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	t.Setenv("KEDA_SCALER", serveQueues(t))
	module := moduleDir(t, "keda", "github.com/kedacore/keda/v2")
	define(t, plane, readManifests(t, filepath.Join(module, "config", "crd", "bases", "*.yaml"))...)
	health := freeport.AddressFor(t)
	operator := manager{"keda", []string{
		"WATCH_NAMESPACE=", "KEDA_CLUSTER_OBJECT_NAMESPACE=default", "KEDA_KUBERNETES_API_TIMEOUT=60s",
		"KEDA_HTTP_DEFAULT_TIMEOUT=600000", // It gives up a scaler that does not answer for twice as long.
		"keda",
		"--enable-prometheus-metrics=false", "--health-probe-bind-address=" + health,
		"--metrics-service-bind-address=" + freeport.AddressFor(t), "--cert-dir=" + certificates.Folder(t),
		"--kube-api-qps=300", "--kube-api-burst=500",
	}, "http://" + health + "/readyz"}
	operator.start(t, plane)
	return nil
}

// What KEDA does in two ways is what it says of a trigger in its own status, and an event about a poll; a Job too many or a wrong verdict is neither.
func TestKEDAsDifferencesHideNoJob(t *testing.T) {
	wrong := []string{
		"job a-~ (3): in the end {\"active\":1}",
		"job a-~: Failed=True (BackoffLimitExceeded: Job has reached the specified backoff limit)",
		"pod of job a-~: Failed ×1",
		"scaledjob a: Ready=False (KEDAJobCreateFailed: refused)",
		`scaledjob a: in the end {"lastActiveTime":"TIME"}`,
		"event about scaledjob a: Normal KEDAJobsCreated: Created 2 jobs",
		"event about scaledjob a: Warning KEDAScalerFailed: rpc error: code = Unavailable desc = refused",
	}
	for scenario, lines := range map[string][]string{
		"keda/rollout": wrong,
		"keda/default": append(
			slices.Clone(wrong), "scaledjob a: Active=True (ScalerActive: Scaling is performed because triggers are active)",
			`scaledjob a: in the end {"lastActiveTime":"TIME","triggersActivity":{"s0-messages":{"isActive":true}},"triggersTypes":"external"}`,
		),
	} {
		c := history.Comparison{Differences: known}
		var want []string
		for _, line := range lines {
			want = append(want, "+ "+line)
		}
		if diff := cmp.Diff(want, c.Compare(scenario, nil, lines)); diff != "" {
			t.Errorf("%s: not all is named (-want +got):\n%s", scenario, diff)
		}
	}
}

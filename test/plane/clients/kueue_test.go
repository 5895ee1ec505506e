package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
)

// kueue starts and stops Jobs, JobSets and TrainJobs by spec.suspend, as quotas allow.
var kueue = client{
	name:  "kueue",
	needs: []string{"kubectl", "jobset", "trainer", "kueue"},
	objects: []schema.GroupVersionResource{
		resource("jobset.x-k8s.io", "v1alpha2", "jobsets"),
		resource("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
		resource("kueue.x-k8s.io", "v1beta2", "workloads"),
	},
	install: installKueue,
}

// kueueConfig is the configuration of its manager, without what each test of Kueue sets in its own way.
const kueueConfig = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "%s"}
metrics: {bindAddress: "0"}
webhook: {port: %s, host: 127.0.0.1, certDir: %s}
internalCertManagement: {enable: false}
clientConnection: {qps: 300, burst: 500}
`

// oneCluster is the rest of it. Timeouts are short, so that scenarios see them pass.
const oneCluster = `
leaderElection: {leaderElect: false}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, trainer.kubeflow.org/trainjob]}
waitForPodsReady:
  timeout: 10s
  recoveryTimeout: 10s
  blockAdmission: false
  requeuingStrategy: {timestamp: Eviction, backoffLimitCount: 1, backoffBaseSeconds: 1, backoffMaxSeconds: 2}
`

// kueueWebhooks are those of its own kinds and of the integrations above.
var kueueWebhooks = []string{"clusterqueue", "cohort", "job", "jobset", "resourceflavor", "trainjob", "workload"}

func installKueue(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	prepareKueue(t, plane).start(t, plane)
	return nil
}

// prepareKueue starts JobSet and Trainer, installs what Kueue needs, and returns its manager.
func prepareKueue(t *testing.T, plane *cluster.Cluster) manager {
	t.Helper()
	installTrainer(t, plane)
	return prepareKueueAlone(t, plane, oneCluster)
}

// prepareKueueAlone installs what Kueue itself needs, and returns its manager. further is the rest of its configuration.
func prepareKueueAlone(t *testing.T, plane *cluster.Cluster, further string) manager {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("Kueue reads a certificate from a fixed folder in /etc; only root can give it one of its own (CLIENTS chooses other clients)")
	}
	components := filepath.Join(moduleDir(t, "kueue", "sigs.k8s.io/kueue"), "config", "components")
	server, health := newWebhookServer(t), freeport.AddressFor(t)
	define(t, plane, kueueDefinitions(t, server, filepath.Join(components, "crd"))...)
	installWebhooks(t, plane, server, "kueue", filepath.Join(components, "webhook", "manifests.yaml"), func(name string) bool {
		return slices.Contains(kueueWebhooks, strings.TrimSuffix(name[1:], ".kb.io"))
	})
	config := writeFile(t, fmt.Sprintf(kueueConfig, health, server.port, server.certDir)+further)
	return manager{"kueue", append(withEtc(t, server), "kueue", "--config="+config), "http://" + health + "/readyz"}
}

// kueueDefinitions are Kueue's kinds. It converts those that its kustomization patches for that.
func kueueDefinitions(t *testing.T, server webhookServer, folder string) []*unstructured.Unstructured {
	t.Helper()
	var converted []string
	for _, kustomization := range readManifests(t, filepath.Join(folder, "kustomization.yaml")) {
		patches, _, _ := unstructured.NestedSlice(kustomization.Object, "patches")
		for _, patch := range patches {
			fields, _ := patch.(map[string]any)
			path, _ := fields["path"].(string)
			converted = append(converted, readManifests(t, filepath.Join(folder, path))[0].GetName())
		}
	}
	all := readManifests(t, filepath.Join(folder, "bases", "*.yaml"))
	for _, definition := range all {
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if len(versions) > 1 && slices.Contains(converted, definition.GetName()) {
			server.convert(definition)
		}
	}
	return all
}

// withEtc begins a command that sees the certificate of a server in /etc/kueue/metrics/certs. Nobody else does: /etc is
// overlaid in a mount namespace of its own.
func withEtc(t *testing.T, server webhookServer) []string {
	t.Helper()
	over := t.TempDir()
	certs := filepath.Join(over, "upper", "kueue", "metrics")
	for _, dir := range []string{certs, filepath.Join(over, "work")} {
		must.Succeed(t, os.MkdirAll(dir, 0o755))
	}
	must.Succeed(t, os.Symlink(server.certDir, filepath.Join(certs, "certs")))
	mount := fmt.Sprintf(`mount -t overlay overlay -o lowerdir=/etc,upperdir=%[1]s/upper,workdir=%[1]s/work /etc && exec "$@"`, over)
	return []string{"unshare", "--mount", "--propagation=private", "sh", "-c", mount, "sh"}
}

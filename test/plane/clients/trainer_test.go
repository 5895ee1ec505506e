package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
)

// trainer makes a JobSet of a TrainJob, and ends with it, or at a deadline of its own.
var trainer = client{
	name:  "trainer",
	needs: []string{"kubectl", "jobset", "trainer"},
	objects: []schema.GroupVersionResource{
		resource("jobset.x-k8s.io", "v1alpha2", "jobsets"),
		resource("trainer.kubeflow.org", "v1alpha1", "trainjobs"),
	},
	install: installTrainer,
}

// trainerConfig is the configuration of its manager.
const trainerConfig = `
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
health: {healthProbeBindAddress: "%s"}
metrics: {bindAddress: "0"}
webhook: {port: %s, host: 127.0.0.1}
leaderElection: {leaderElect: false}
certManagement: {enable: false}
clientConnection: {qps: 300, burst: 500}
`

func installTrainer(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	prepareTrainer(t, plane).start(t, plane)
	return nil
}

// prepareTrainer starts JobSet, installs what Trainer needs, and returns its manager.
func prepareTrainer(t *testing.T, plane *cluster.Cluster) manager {
	t.Helper()
	installJobSet(t, plane)
	base := filepath.Join(moduleDir(t, "trainer", "github.com/kubeflow/trainer/v2"), "manifests", "base")
	server, health := newWebhookServer(t), freeport.AddressFor(t)
	define(t, plane, readManifests(t, filepath.Join(base, "crds", "trainer.kubeflow.org_*.yaml"))...)
	installWebhooks(t, plane, server, "trainer", filepath.Join(base, "webhook", "manifests.yaml"), every)
	config := writeFile(t, fmt.Sprintf(trainerConfig, health, server.port))
	return manager{"trainer", []string{"TMPDIR=" + withServingCerts(t, server), "trainer", "--config=" + config}, "http://" + health + "/readyz"}
}

// withServingCerts is a folder for temporary files in which a manager, whose configuration cannot name one, finds the certificate
// of a server.
func withServingCerts(t *testing.T, server webhookServer) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "k8s-webhook-server")
	must.Succeed(t, os.Mkdir(folder, 0o755))
	must.Succeed(t, os.Symlink(server.certDir, filepath.Join(folder, "serving-certs")))
	return filepath.Dir(folder)
}

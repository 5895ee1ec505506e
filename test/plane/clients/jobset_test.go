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

// jobset makes several Jobs of one object, restarts them together, and ends with them.
var jobset = client{
	name:    "jobset",
	needs:   []string{"kubectl", "jobset"},
	objects: []schema.GroupVersionResource{resource("jobset.x-k8s.io", "v1alpha2", "jobsets")},
	install: installJobSet,
}

// jobsetConfig is the configuration of its manager: certificates from a folder, no leader election, and the gate
// for restarts of single Jobs.
const jobsetConfig = `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
webhook: {port: %s, host: 127.0.0.1, certDir: %s}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "%s"}
featureGates: {RestartJob: true}
`

func installJobSet(t *testing.T, plane *cluster.Cluster) func(*testing.T, side) {
	t.Helper()
	prepareJobSet(t, plane, "jobset").start(t, plane)
	return nil
}

// prepareJobSet installs what a program needs that runs JobSet's controllers and webhooks, and returns its manager.
func prepareJobSet(t *testing.T, plane *cluster.Cluster, program string) manager {
	t.Helper()
	components := filepath.Join(moduleDir(t, "jobset", "sigs.k8s.io/jobset"), "config", "components")
	server, health := newWebhookServer(t), freeport.AddressFor(t)
	define(t, plane, readManifests(t, filepath.Join(components, "crd", "bases", "*.yaml"))...)
	installWebhooks(t, plane, server, "jobset", filepath.Join(components, "webhook", "manifests.yaml"), every)
	config := writeFile(t, fmt.Sprintf(jobsetConfig, server.port, server.certDir, health))
	return manager{program, []string{program, "--config=" + config}, "http://" + health + "/readyz"}
}

// writeFile writes a file that goes with the test.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

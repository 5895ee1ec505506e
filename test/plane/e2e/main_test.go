// Package e2e runs Jobs on a real control plane: etcd, API server, scheduler,
// a node that runs host processes, the policy engine and the executor, each in
// its own process. It is started once for all tests; each test has a namespace.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// Of the one control plane that all tests share.
var (
	plane  *cluster.Cluster
	client *kubernetes.Clientset
	traces *collector
	// auditLog records the requests of the executor.
	auditLog string
	// decisionLog is the executor's.
	decisionLog string
)

const patience = controlplane.Patience

// clusterGroup is the group of CronJobs that is one of the cluster under test.
const clusterGroup = "shared-database"

// The control plane under test retries pods after one second, not ten.
var executorArgs = []string{"--pod-failure-backoff=1s", "--cluster-group=" + clusterGroup + "=2"}

// parallelTests is how many tests run at the same time. They mostly wait.
const parallelTests = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if err := flag.Set("test.parallel", parallelTests); err != nil {
		return 1, err
	}
	binaries, err := executables.Dir()
	if err != nil {
		return 1, err
	}
	stateDir, err := os.MkdirTemp("", "jobpolicy-e2e-")
	if err != nil {
		return 1, err
	}
	if traces, err = startCollector(); err != nil {
		return 1, err
	}
	defer traces.stop()
	auditDir, err := os.MkdirTemp("", "jobpolicy-audit-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(auditDir)
	var auditing []string
	if auditLog, auditing, err = auditArgs(auditDir, executorUser); err != nil {
		return 1, err
	}
	decisionLog = filepath.Join(auditDir, "decisions.log")
	telemetry := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + traces.address,
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_BSP_SCHEDULE_DELAY=200",
	}
	plane, err = cluster.Start(context.Background(), cluster.Options{
		StateDir: stateDir,
		BinDir:   binaries,

		KubernetesDir: controlplane.KubernetesDir(binaries),

		Progress: func(p cluster.Progress) { fmt.Fprintln(os.Stderr, p) },
		ExtraArgs: map[string][]string{
			cluster.APIServer: auditing,
			cluster.Executor:  append([]string{"--decision-log=" + decisionLog}, executorArgs...),
			cluster.Node:      {"--crash-backoff-base=1s"},
		},
		ExtraEnv: map[string][]string{cluster.Engine: telemetry, cluster.Executor: telemetry},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintln(os.Stderr, tail(plane.LogPath(cluster.Executor), 60))
		}
		if stopErr := plane.Stop(context.Background()); err == nil {
			err = stopErr
		}
	}()
	if client, err = kubernetes.NewForConfig(plane.RESTConfig()); err != nil {
		return 1, err
	}
	if code = m.Run(); code != 0 || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return code, nil
	}
	role, err := client.RbacV1().ClusterRoles().Get(context.Background(), cluster.ExecutorRole, metav1.GetOptions{})
	if err != nil {
		return 1, err
	}
	return 0, checkSharedAudit(auditLog, role.Rules)
}

// executorUser is the executor of the shared control plane.
const executorUser = "jobpolicy-executor"

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	out, err := exec.Command("tail", "-n", fmt.Sprint(lines), path).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("--- the end of %s\n%s", path, out)
}

// logsExecutor shows the end of the executor's log if the test fails.
func logsExecutor(t *testing.T, plane *cluster.Cluster) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(tail(plane.LogPath(cluster.Executor), 60))
		}
	})
}

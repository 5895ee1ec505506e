// Package telemetry runs both services as pods on a cluster with real containers, beside a caller of the engine in a
// namespace of its own and an OpenTelemetry collector, and follows the traces from pod to pod.
package telemetry

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/cluster/shared"
)

const (
	installNamespace = "jobpolicy-system"
	// A cluster of these tests has a ClusterRole jobpolicy-executor already, so that the release has another name.
	release  = "batch"
	fullname = release + "-jobpolicy"
)

func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, cluster.Options{WithoutEngine: true, WithoutExecutor: true}))
}

// A third pod calls the engine with the certificate that the release made for it; one without a certificate, or with
// that of another authority, is refused. The caller's trace and the executor's continue in the engine.
func TestTracesOfCallerAndExecutorContinueInTheEngine(t *testing.T) {
	shared.CreateNamespace(t, callerNamespace)
	shared.CreateNamespace(t, collectorNamespace)
	startCollector(t)
	install(t)

	caller := call(t, "caller", clientSecret)
	if log := logOf(t, caller); caller.Status.Phase != corev1.PodSucceeded || !strings.Contains(log, "DISPOSITION_APPLY") {
		t.Errorf("the caller's pod is %s and says %q", caller.Status.Phase, log)
	}
	refused(t, call(t, "without-certificate", clientSecret, "ca.crt"))
	refused(t, call(t, "other-authority", foreignSecret(t)))

	shared.Eventually(t, "traces at the collector", func() error {
		traces := tracesOf(collectorLog(t))
		for _, service := range []string{callerService, "jobpolicy-executor"} {
			if !traces.shared(service, "jobpolicy-engine") {
				return fmt.Errorf("no trace of %s continues in the engine; traces by service: %v", service, traces)
			}
		}
		return nil
	})
}

// install installs the chart as an administrator does, and waits until all pods are ready.
func install(t *testing.T) {
	t.Helper()
	for _, service := range []string{"jobpolicy-engine", "jobpolicy-executor"} {
		shared.Load(t, filepath.Join(executables.MustDir(t), "images", service+".tar"))
	}
	helm := exec.CommandContext(t.Context(), "../../../../.bin/helm", "install", release, "../../../../deploy/chart/jobpolicy",
		"--namespace", installNamespace, "--create-namespace", "--wait", "--timeout", shared.Patience.String(), "--values", "-")
	helm.Stdin = strings.NewReader(fmt.Sprintf(`
certificates:
  clients:
    - {name: caller, namespace: %s}
env:
  - {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: %q}
  - {name: OTEL_EXPORTER_OTLP_PROTOCOL, value: grpc}
`, callerNamespace, collectorEndpoint))
	home := t.TempDir()
	helm.Env = append(os.Environ(), "KUBECONFIG="+shared.Cluster().Kubeconfig(),
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if output, err := helm.CombinedOutput(); err != nil {
		t.Fatalf("helm install: %v: %s", err, output)
	}
}

// program completes a pod that runs a program of this machine in the node's smallest image.
func program(t *testing.T, spec *corev1.PodSpec, name string, args ...string) {
	t.Helper()
	path := filepath.Join(executables.MustDir(t), name)
	file := corev1.HostPathFile
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "program", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &file},
	}})
	main := &spec.Containers[0]
	main.Name, main.Image, main.ImagePullPolicy = "main", "busybox", corev1.PullIfNotPresent
	main.Command = append([]string{"/program"}, args...)
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "program", MountPath: "/program", ReadOnly: true})
}

// logOf returns what the pod's container has written.
func logOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	text, err := shared.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.WithoutCancel(t.Context()))
	must.Succeed(t, err)
	return string(text)
}

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/test/conformancekit"
)

// The conformance kit finds nothing wrong with an executor.
func TestTheConformanceKitPassesTheExecutor(t *testing.T) {
	t.Parallel()
	const manager, jobs = "example.com/watched", 4
	kit := conformancekit.Start(t, jobs, plane.Kubeconfig())
	file := func(name string) string { return filepath.Join(kit.Certificates, name) }
	executor := startExecutorAs(t, kit.Kubeconfig, "--engine=dns:///"+kit.Address, "--engine-ca-file="+file("ca.crt"), "--engine-cert-file="+file("tls.crt"),
		"--engine-key-file="+file("tls.key"), "--managed-by="+manager, "--leader-elect=false", "--pod-failure-backoff=1s")
	eventually(t, "the executor is ready", executor.ready)
	namespace := newNamespace(t)
	// One fails while another of its pods runs, which is deleted.
	createJob(t, namespace, "watched-0", batchv1.JobSpec{
		ManagedBy: new(manager), Completions: new(int32(2)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
		BackoffLimit: new(int32(0)), Template: shell(`test "$JOB_COMPLETION_INDEX" = 0 || exec sleep 1000; sleep 1; exit 1`, corev1.RestartPolicyNever),
	})
	for i := 1; i < jobs; i++ {
		createJob(t, namespace, fmt.Sprint("watched-", i), batchv1.JobSpec{
			ManagedBy: new(manager), Completions: new(int32(5)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion),
			BackoffLimitPerIndex: new(int32(1)), Template: shell(`test "$JOB_COMPLETION_INDEX" != 3`, corev1.RestartPolicyNever),
		})
	}
	for i := range jobs {
		waitFinished(t, namespace, fmt.Sprint("watched-", i))
	}
	kit.Check(t)
}

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// The control plane gets another version under the executor and its Jobs, on the same etcd: first
// the newer one of jobpolicy-local, then the older one again.
func TestTheControlPlaneIsUpgradedAndDowngraded(t *testing.T) {
	if controlplane.Minor() == 0 {
		t.Skip("JOBPOLICY_KUBERNETES names no other version to begin with")
	}
	older := controlplane.KubernetesDir(executables.MustDir(t))
	namespace := newNamespace(t) // There before: making one takes the controller manager.
	idle := firstPod(t, namespace)
	t.Run("up", func(t *testing.T) { losesNothing(t, func(t *testing.T) { change(t, "", namespace, idle) }) })
	t.Run("down", func(t *testing.T) { losesNothing(t, func(t *testing.T) { change(t, older, namespace, idle) }) })
}

// change replaces the servers by those in dir. The API server's clients are away meanwhile: none may be newer, and the
// controller manager ends when the API server goes while it starts. It checks that the executor acts 5 s after the API
// server is back, beside the time that it takes when nothing is changed.
func change(t *testing.T, dir, namespace string, idle time.Duration) {
	t.Helper()
	plane.SetKubernetesDir(dir)
	stop(t, cluster.ControllerManager)
	stop(t, cluster.Scheduler)
	began := time.Now()
	stop(t, cluster.APIServer)
	start(t, cluster.APIServer)
	away, acted := time.Since(began), firstPod(t, namespace)
	start(t, cluster.ControllerManager)
	start(t, cluster.Scheduler)
	version, err := client.Discovery().ServerVersion()
	must.Succeed(t, err)
	t.Logf("%s: the API server was away for %s; a new Job then has its first pod after %s, and after %s when nothing is changed",
		version.GitVersion, away.Round(time.Millisecond), acted.Round(time.Millisecond), idle.Round(time.Millisecond))
	// Both were measured on this machine, which may be busy with other things now.
	if limit := 5*time.Second + 10*idle; acted > limit {
		t.Errorf("the executor stood still for %s, want at most %s", acted, limit)
	}
}

func stop(t *testing.T, component string) {
	t.Helper()
	if _, err := plane.StopComponent(context.Background(), component); err != nil {
		t.Fatal(err)
	}
}

// firstPod is how long it takes until a new Job has a pod. Only the executor has a part in it.
func firstPod(t *testing.T, namespace string) time.Duration {
	t.Helper()
	began := time.Now()
	job := createJob(t, namespace, fmt.Sprintf("new-%d", began.UnixNano()), batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	eventually(t, "a pod", func() (bool, string) { return len(jobPods(t, job)) > 0, describe(job) })
	return time.Since(began)
}

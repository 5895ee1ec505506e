package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
)

// Before a Job is affected, a probe says who acts on Jobs: here the executor, in replace
// mode, alone. It leaves nothing behind.
func TestProbe(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	out, err := kubectlJobpolicy(t, namespace, "preflight", "--probe", "--timeout=2m")
	if err != nil || !strings.HasPrefix(out, "jobpolicy: jobpolicy-executor wrote the status") {
		t.Errorf("%v; want the executor's name:\n%s", err, out)
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 0 {
		t.Errorf("%v; %d Jobs are left", err, len(jobs.Items))
	}
}

// checkProbesWithoutExecutor probes while only the built-in controller is on, and then
// while nobody is.
func checkProbesWithoutExecutor(t *testing.T, beside *cluster.Cluster, namespace string) {
	t.Helper()
	must.Succeed(t, beside.Kill(cluster.Executor))
	probe := func(timeout, want string) {
		t.Helper()
		out, err := plugin(t, "preflight", "--probe", "--timeout="+timeout, "--kubeconfig="+beside.Kubeconfig(), "--namespace="+namespace)
		if err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%v; want %q:\n%s", err, want, out)
		}
	}
	probe("2m", "The built-in controller: "+builtInAgent)
	must.Succeed(t, beside.Kill(cluster.ControllerManager))
	probe("3s", "Nobody: ")
	if err := beside.StartComponent(t.Context(), cluster.ControllerManager); err != nil { // It also deletes namespaces.
		t.Fatal(err)
	}
}

// Preflight names the objects that a difference would touch.
func TestPreflight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "large", batchv1.JobSpec{
		Suspend: new(true), Parallelism: new(int32(1000)), Completions: new(int32(1000)), Template: shell("true", corev1.RestartPolicyNever),
	})
	out, err := kubectlJobpolicy(t, namespace, "preflight")
	if err != nil || !strings.Contains(out, "Jobs: 1, not finished: 1 (of the built-in controller 1, of others 0)") || !strings.Contains(out, "touched:  job "+namespace+"/large") {
		t.Errorf("%v; want the Job and what touches it:\n%s", err, out)
	}
}

package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Preflight names the objects that a difference would touch.
func TestPreflight(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "large", batchv1.JobSpec{
		Suspend: ptr(true), Parallelism: ptr[int32](1000), Completions: ptr[int32](1000), Template: shell("true", corev1.RestartPolicyNever),
	})
	out, err := kubectlJobpolicy(t, namespace, "preflight")
	if err != nil || !strings.Contains(out, "Jobs: 1, of which the built-in controller acts on 1") || !strings.Contains(out, "touched:  job "+namespace+"/large") {
		t.Errorf("%v; want the Job and what touches it:\n%s", err, out)
	}
}

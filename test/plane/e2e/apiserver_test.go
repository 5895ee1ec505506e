package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/must"
)

func TestTheExecutorTellsTheVersionOfTheAPIServer(t *testing.T) {
	t.Parallel()
	version, err := client.Discovery().ServerVersion()
	must.Succeed(t, err)
	eventually(t, "metric and readiness", func() (bool, string) {
		_, metrics := get(plane.ExecutorURL() + "/metrics")
		_, ready := get(plane.ExecutorURL() + "/readyz")
		told := strings.Contains(metrics, "\njobpolicy_kubernetes_minor "+version.Minor+"\n") && strings.Contains(ready, "[+] api-server: ok, "+version.GitVersion+"\n")
		return told, ready
	})
}

// Without the API of gangs, an executor that is to schedule gangs says what to do, is not kept from other
// work, and creates no pods outside of their gang.
func TestAnExecutorWithoutTheAPIOfGangs(t *testing.T) {
	t.Parallel()
	const manager = "example.com/gangs"
	second := startExecutor(t, "--engine=embedded", "--managed-by="+manager, "--leader-elect=false", gangExecutorGates)
	eventually(t, "it says what is missing", func() (bool, string) {
		ready, why := second.ready()
		return !ready && strings.Contains(why, "[+] caches: ok") && strings.Contains(why, "does not serve the Workloads and PodGroups of scheduling.k8s.io/v1beta1"), why
	})
	namespace := newNamespace(t)
	job := createJob(t, namespace, "gang", gangSpec(manager, 2, "true"))
	eventually(t, "an event names the API", func() (bool, string) {
		events, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
		if err != nil || len(events.Items) == 0 {
			return false, "none"
		}
		return strings.Contains(events.Items[0].Message, "scheduling.k8s.io/v1beta1"), events.Items[0].Message
	})
	if pods := jobPods(t, job); len(pods) > 0 {
		t.Errorf("%d pods outside of their gang", len(pods))
	}
	if err := client.BatchV1().Jobs(namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/objects"
)

// Somebody has left the built-in Job controller on, and the executor runs in replace mode.
// It notices, says so, and leaves the Job to the other from then on.
func TestStandsDownBesideTheBuiltinController(t *testing.T) {
	t.Parallel()
	const completions, parallelism = 20, 2
	beside, client := startBesidePlane(t, "--replace-builtin", "--on-second-controller=stand-down")
	ours := &executorProcess{url: beside.ExecutorURL()}
	if n := ours.metric(t, "jobpolicy_second_controller_writes_total"); n != 0 {
		t.Errorf("before there is a Job, %v writes of another controller", n)
	}
	namespace := newNamespaceOn(t, client)
	createJobOn(t, client, namespace, "contested", batchv1.JobSpec{
		Completions: new(int32(completions)), Parallelism: new(int32(parallelism)), Template: shell("sleep 0.3", corev1.RestartPolicyNever),
	})
	job := waitJobOn(t, client, namespace, "contested", "the built-in controller finishes it", isComplete)
	if job.Status.Succeeded != completions {
		t.Errorf("the Job ended with %s", describe(job))
	}
	var noticed time.Time
	eventually(t, "an event on the Job names the other", func() (bool, string) {
		events, err := client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=SecondController"})
		if err != nil || len(events.Items) != 1 {
			return false, "no event"
		}
		noticed = events.Items[0].FirstTimestamp.Time
		message := events.Items[0].Message
		return strings.HasPrefix(message, builtInAgent+" works on this Job, too") && strings.HasSuffix(message, "leaves the Job alone"), message
	})
	pods := objects.List(t, client.CoreV1().Pods(namespace), metav1.ListOptions{})
	by, late := map[string]int{}, 0
	for i := range pods.Items {
		maker := agent(&pods.Items[i])
		by[maker]++
		if maker == cluster.Executor && pods.Items[i].CreationTimestamp.After(noticed) { // both are whole seconds
			late++
		}
	}
	t.Logf("pods by who created them: %v", by)
	if by[builtInAgent] == 0 || by[""] > 0 {
		t.Errorf("pods by who created them: %v; want some of %s", by, builtInAgent)
	}
	// When the executor notices the other, it may be creating as many pods as run at once.
	if late > parallelism {
		t.Errorf("the executor created %d pods after it noticed the other, want at most %d", late, parallelism)
	}

	if n := ours.metric(t, "jobpolicy_second_controller_writes_total"); n == 0 {
		t.Error("the metric shows no writes of another controller")
	}
	code, body := get(beside.ExecutorURL() + "/readyz")
	if code != http.StatusOK || !strings.Contains(body, "[+] second-controller: ok, WARNING: "+builtInAgent+" works on managed Jobs, too") {
		t.Errorf("/readyz: %d\n%s", code, body)
	}
	checkProbesWithoutExecutor(t, beside, namespace)
}

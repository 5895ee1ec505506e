package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/deploy/local/cluster"
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
	jobs := client.BatchV1().Jobs(namespace)
	_, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "contested"},
		Spec: batchv1.JobSpec{
			Completions: new(int32(completions)), Parallelism: new(int32(parallelism)), Template: shell("sleep 0.3", corev1.RestartPolicyNever),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var job *batchv1.Job
	eventually(t, "the built-in controller finishes the Job", func() (bool, string) {
		job, err = jobs.Get(t.Context(), "contested", metav1.GetOptions{})
		return err == nil && conditionReason(job, batchv1.JobComplete) != "", describe(job)
	})
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
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	by, late := map[string]int{}, 0
	for i := range pods.Items {
		maker := podMaker(&pods.Items[i])
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

// podMaker is the field manager that created a pod.
func podMaker(pod *corev1.Pod) string {
	i := slices.IndexFunc(pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "" })
	if i < 0 {
		return ""
	}
	return pod.ManagedFields[i].Manager
}

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/cluster"
)

// These tests stop the services that all tests share, so they do not run beside
// others: none of them is parallel, and the parallel ones wait for them.

// goOnBesideOthers makes a test parallel that has killed all that it kills. Until its turn comes, its Jobs run on while the tests
// after it kill services. So it may only check what is left in the end, and nothing that a kill changes, such as a longest delay.
func goOnBesideOthers(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// disturbances stop a service in the middle of Jobs, and bring it back.
var disturbances = []struct {
	name    string
	disturb func(t *testing.T)
}{
	{"the executor is killed", func(t *testing.T) { killAndStart(t, cluster.Executor) }},
	{"the engine is killed", func(t *testing.T) { killAndStart(t, cluster.Engine) }},
	{"the executor is told to stop", func(t *testing.T) { stopAndStart(t, cluster.Executor) }},
	{"the engine is told to stop", func(t *testing.T) { stopAndStart(t, cluster.Engine) }},
}

func killAndStart(t *testing.T, component string) {
	t.Helper()
	if err := plane.Kill(component); err != nil {
		t.Fatalf("kill: %v", err)
	}
	start(t, component)
}

func stopAndStart(t *testing.T, component string) {
	t.Helper()
	state, err := plane.StopComponent(context.Background(), component)
	if err != nil {
		t.Fatalf("stop: %v", err)
	}
	if state.Code != 0 || state.Signal != 0 {
		t.Errorf("%s was told to stop and ended with %v", component, state)
	}
	start(t, component)
}

func start(t *testing.T, component string) {
	t.Helper()
	if err := plane.StartComponent(context.Background(), component); err != nil {
		t.Fatalf("start: %v", err)
	}
}

func TestRestartsLoseNothing(t *testing.T) {
	for _, tc := range disturbances {
		t.Run(tc.name, func(t *testing.T) { losesNothing(t, tc.disturb) })
	}
}

// losesNothing disturbs Jobs in their middle, and checks that their counts are exact.
func losesNothing(t *testing.T, disturb func(*testing.T)) {
	t.Helper()
	namespace := newNamespace(t)
	createJob(t, namespace, "indexed", batchv1.JobSpec{
		Parallelism: new(int32(8)), Completions: new(int32(24)), CompletionMode: new(batchv1.IndexedCompletion),
		Template: shell("sleep 0.$((JOB_COMPLETION_INDEX % 7 + 3))", corev1.RestartPolicyNever),
	})
	createJob(t, namespace, "failing", batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(2)), BackoffLimit: new(int32(3)),
		Template: shell("sleep 0.5; exit 1", corev1.RestartPolicyNever),
	})
	waitJob(t, namespace, "indexed", "some indexes are done", func(job *batchv1.Job) bool { return job.Status.Succeeded >= 3 })
	disturb(t)
	checkIndexed(t, waitFinished(t, namespace, "indexed"))
	checkFailing(t, waitFinished(t, namespace, "failing"))
}

// checkIndexed: all indexes done, and no index run again after it succeeded.
func checkIndexed(t *testing.T, job *batchv1.Job) {
	t.Helper()
	if job.Status.CompletedIndexes != "0-23" || job.Status.Succeeded != 24 || job.Status.Failed != 0 {
		t.Errorf("counts are off: %s", describe(job))
	}
	succeeded := map[string]int{}
	for _, pod := range jobPods(t, job) {
		if pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
		succeeded[pod.Annotations[batchv1.JobCompletionIndexAnnotation]]++
	}
	for index, n := range succeeded {
		if n != 1 {
			t.Errorf("index %s succeeded %d times", index, n)
		}
	}
}

// checkFailing: the counter is the number of pods that failed, with those that still ran when the Job failed: they
// were deleted, and each has an event.
func checkFailing(t *testing.T, job *batchv1.Job) {
	t.Helper()
	if reason := conditionReason(job, batchv1.JobFailed); reason != "BackoffLimitExceeded" {
		t.Errorf("the failing Job ended otherwise: %s", describe(job))
	}
	pods := jobPods(t, job)
	failed := 0
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed {
			failed++
		}
	}
	if failed < 4 {
		t.Errorf("%d of %d pods failed; %s", failed, len(pods), describe(job))
	}
	eventually(t, "each pod counts once", func() (bool, string) {
		reasons := eventReasons(t, job)
		deleted := len(slices.DeleteFunc(reasons, func(reason string) bool { return reason != "SuccessfulDelete" }))
		return int(job.Status.Failed) == failed+deleted, fmt.Sprintf("%d pods failed, %d were deleted; %s", failed, deleted, describe(job))
	})
}

// The retry delay is computed from the pods, so a restart does not cut it short.
func TestRetryDelaySurvivesRestart(t *testing.T) {
	namespace := newNamespace(t)
	createJob(t, namespace, "retried", batchv1.JobSpec{
		BackoffLimit: new(int32(3)), Template: shell("exit 1", corev1.RestartPolicyNever),
	})
	waitJob(t, namespace, "retried", "three pods failed", func(job *batchv1.Job) bool { return job.Status.Failed == 3 })
	killAndStart(t, cluster.Executor)
	job := waitFinished(t, namespace, "retried")
	pods := jobPods(t, job)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if len(pods) != 4 {
		t.Fatalf("%d pods, want 4; %s", len(pods), describe(job))
	}
	// The third delay is 4 s: base 1 s, doubled twice. The API keeps times in
	// whole seconds, so up to one of them may seem to be missing.
	finished := pods[2].Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if waited := pods[3].CreationTimestamp.Sub(finished.Time); waited < 3*time.Second {
		t.Errorf("the fourth pod was created %v after the third failed; the delay is 4s", waited)
	}
}

func TestReadinessFollowsTheEngine(t *testing.T) {
	ready := func() (int, string) { return get(plane.ExecutorURL() + "/readyz") }
	eventually(t, "ready at first", func() (bool, string) { code, body := ready(); return code == http.StatusOK, body })
	if _, err := plane.StopComponent(context.Background(), cluster.Engine); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not ready without the engine", func() (bool, string) {
		code, body := ready()
		return code == http.StatusServiceUnavailable && strings.Contains(body, "engine"), body
	})
	namespace := newNamespace(t)
	createJob(t, namespace, "held", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	start(t, cluster.Engine)
	eventually(t, "ready again", func() (bool, string) { code, body := ready(); return code == http.StatusOK, body })
	if job := waitFinished(t, namespace, "held"); job.Status.Succeeded != 1 {
		t.Errorf("a Job created without an engine ended as %s", describe(job))
	}
}

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/must"
)

// exitCode is that of a command that may have failed; -1 if it did not run.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return -1
}

// Wait ends when the Job is finished, either way, and its exit code says how.
func TestWaitEndsEitherWay(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cases := map[string]struct {
		spec batchv1.JobSpec
		args []string
		code int
		want string
	}{
		"complete": {
			spec: batchv1.JobSpec{Template: shell("sleep 2", corev1.RestartPolicyNever)}, code: 0, want: "Complete after ",
		},
		"failed": {
			spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell("exit 3", corev1.RestartPolicyNever)}, code: 1, want: "Failed after ",
		},
		"late": {
			spec: batchv1.JobSpec{Suspend: new(true), Template: shell("true", corev1.RestartPolicyNever)}, args: []string{"--timeout", "2s"},
			code: 3, want: "--timeout is over",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			createJob(t, namespace, name, tc.spec)
			out, err := kubectlJobpolicy(t, namespace, append([]string{"wait", "job/" + name}, tc.args...)...)
			if exitCode(err) != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("%v, want exit code %d and %q:\n%s", err, tc.code, tc.want, out)
			}
		})
	}
}

// A Job of the cluster is played from its beginning, whatever became of it.
func TestSimulateFromTheCluster(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "real", batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: shell("true", corev1.RestartPolicyNever)})
	waitFinished(t, namespace, "real")
	out, err := kubectlJobpolicy(t, namespace, "simulate", "--from", "job/real", "--pod", "*:fail(9)@5s")
	for _, want := range []string{"pod 0 failed: exit code 9", "Failed (BackoffLimitExceeded)", "2 created: failed 2"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v, want %q:\n%s", err, want, out)
		}
	}
}

// The timeline of a Job shows its pods and conditions, as text and as a page.
func TestTimeline(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	createJob(t, namespace, "retried", batchv1.JobSpec{BackoffLimit: new(int32(1)), Template: shell("exit 5", corev1.RestartPolicyNever)})
	job := waitFinished(t, namespace, "retried")
	page := t.TempDir() + "/page.html"
	out, err := kubectlJobpolicy(t, namespace, "timeline", "job/retried", "--html", page)
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	t.Log(out)
	for _, want := range []string{"Failed (BackoffLimitExceeded)", "failed, exit code 5"} {
		if strings.Count(out, want) == 0 {
			t.Errorf("the timeline lacks %q:\n%s", want, out)
		}
	}
	html := pageText(t, page)
	for _, pod := range jobPods(t, job) {
		if !strings.Contains(out, pod.Name) || !strings.Contains(html, pod.Name) {
			t.Errorf("pod %s is not in the timeline:\n%s", pod.Name, out)
		}
	}
}

func pageText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Succeed(t, err)
	return string(data)
}

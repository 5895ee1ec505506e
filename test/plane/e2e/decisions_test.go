package e2e

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
)

// kubectl jobpolicy decisions --watch prints the decisions of a real executor as they are
// made, and without --watch the last one on each Job.
func TestDecisionsAreALiveLog(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watch := exec.CommandContext(ctx, filepath.Join(executables.MustDir(t), "kubectl-jobpolicy"), "decisions", "-w", "-n", namespace, "--url", plane.ExecutorURL())
	out, err := watch.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, watch.Start())
	createJob(t, namespace, "watched", batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: shell("exit 3", corev1.RestartPolicyNever)})
	seen := ""
	for lines := bufio.NewScanner(out); !strings.Contains(seen, "the Job fails") && lines.Scan(); {
		seen += lines.Text() + "\n"
	}
	stop()
	_ = watch.Wait() // It was stopped.
	if !strings.Contains(seen, namespace+"/watched") || !strings.Contains(seen, "the Job fails") {
		t.Errorf("decisions -w printed\n%s", seen)
	}
	list, err := plugin(t, "decisions", "-n", namespace, "--url", plane.ExecutorURL())
	if err != nil || strings.Count(list, "\n") != 1 || !strings.Contains(list, namespace+"/watched") {
		t.Errorf("decisions: %v, want one line about the Job:\n%s", err, list)
	}
}

package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/node/cluster/shared"
)

// A kubelet ends a running pod whose spec.activeDeadlineSeconds is lowered to a time that is over, within its grace period. After the
// Job has failed, its log and its exit code can still be read, and so can those of a container that was restarted too often
// (kubernetes/kubernetes#107891, #74848).
func TestLogsOfEndedPodsStay(t *testing.T) {
	namespace := shared.Namespace(t)
	keeps := map[string]string{"jobpolicy.dev/policy": "{job: {whenJobFails: EndPods}}"}
	late := job("late", "busybox", "sh", "-c", `trap 'echo saved; exit 7' TERM; echo step 17 of 40; while :; do sleep 1; done`)
	late.Annotations, late.Spec.ActiveDeadlineSeconds = keeps, new(int64(15))
	late.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
	crashes := job("crashes", "busybox", "sh", "-c", "echo the disk is full; exit 5")
	crashes.Annotations, crashes.Spec.Template.Spec.RestartPolicy = keeps, corev1.RestartPolicyOnFailure
	for _, tc := range []struct {
		job  *batchv1.Job
		exit int32
		log  []string
	}{
		{late, 7, []string{"step 17 of 40", "saved"}},
		{crashes, 5, []string{"the disk is full"}},
	} {
		create(t, namespace, tc.job)
		waitFailed(t, namespace, tc.job.Name)
		pod := podOf(t, namespace, tc.job.Name, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed && len(p.Finalizers) == 0 })
		container := pod.Status.ContainerStatuses[0]
		end := cmp.Or(container.State.Terminated, container.LastTerminationState.Terminated) // It may wait for its next start.
		if pod.Status.Reason != "DeadlineExceeded" || pod.DeletionTimestamp != nil || end == nil || end.ExitCode != tc.exit {
			t.Errorf("pod %s is %v, want DeadlineExceeded and exit code %d", pod.Name, pod.Status, tc.exit)
		}
		log := logOf(t, pod)
		for _, line := range tc.log {
			if !strings.Contains(log, line+"\n") {
				t.Errorf("the log of pod %s is %q, want the line %q", pod.Name, log, line)
			}
		}
	}
}

func waitFailed(t *testing.T, namespace, name string) {
	t.Helper()
	shared.Eventually(t, "the end of Job "+name, func() error {
		job, err := shared.Client().BatchV1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && job.Status.Failed == 1 && job.Status.Active == 0 {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", job.Status)
	})
}

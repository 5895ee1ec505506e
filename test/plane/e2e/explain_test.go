package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/executables"
)

// kubectlJobpolicy runs the plugin of kubectl on the shared control plane.
func kubectlJobpolicy(t *testing.T, namespace string, args ...string) (output string, err error) {
	t.Helper()
	return plugin(t, append(args, "--kubeconfig", plane.Kubeconfig(), "--namespace", namespace)...)
}

// plugin runs a command of kubectl jobpolicy that needs no cluster.
func plugin(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(executables.MustDir(t), "kubectl-jobpolicy"), args...).CombinedOutput()
	return string(out), err
}

// waitExplained waits until explain says that a Job is in a state, and then until its
// answer for people contains the texts. A Job that backs off may leave that state between
// the two answers, and comes back to it.
func waitExplained(t *testing.T, job *batchv1.Job, state string, texts ...string) {
	t.Helper()
	eventually(t, "explain says "+state+" of "+job.Name, func() (bool, string) {
		out, err := kubectlJobpolicy(t, job.Namespace, "explain", "job/"+job.Name, "-o", "json")
		var e struct{ State string }
		if err != nil || json.Unmarshal([]byte(out), &e) != nil {
			return false, out
		}
		return e.State == state, out
	})
	eventually(t, "explain -o wide of "+job.Name, func() (bool, string) {
		out, err := kubectlJobpolicy(t, job.Namespace, "explain", "job/"+job.Name, "-o", "wide")
		if err != nil {
			return false, fmt.Sprintf("%v\n%s", err, out)
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return false, fmt.Sprintf("the answer lacks %q:\n%s", text, out)
			}
		}
		t.Log(out)
		return true, ""
	})
}

// Explain says what goes on with Jobs of a real control plane, as their own
// controllers leave them.
func TestExplain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec  batchv1.JobSpec
		state string
		want  []string
		// settled is called when the Job is there.
		settled func(*testing.T, *batchv1.Job)
	}{
		"backoff": {
			spec:  batchv1.JobSpec{BackoffLimit: new(int32(20)), Template: shell("exit 7", corev1.RestartPolicyNever)},
			state: "BackingOff", want: []string{"container main ended with exit code 7", "the retry delay", "of 20 left"},
		},
		"suspended": {
			spec:  batchv1.JobSpec{Suspend: new(true), Template: shell("true", corev1.RestartPolicyNever)},
			state: "Suspended", want: []string{"it gets no pods until spec.suspend is false"},
		},
		"deadline": {
			spec:  batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(1)), Template: shell("sleep 600", corev1.RestartPolicyNever)},
			state: "Failed", want: []string{"Job was active longer than specified deadline (DeadlineExceeded)", "spec.activeDeadlineSeconds (1)"},
		},
		"rule": {
			spec: batchv1.JobSpec{
				Template: shell("exit 42", corev1.RestartPolicyNever), PodFailurePolicy: onExit(42, batchv1.PodFailurePolicyActionFailJob),
			},
			state: "Failed", want: []string{"failed with exit code 42 matching FailJob rule at index 0 (PodFailurePolicy)", "A rule of spec.podFailurePolicy"},
		},
		"image": {
			spec:  batchv1.JobSpec{Template: onAbsentNode(shell("true", corev1.RestartPolicyNever))},
			state: "Stuck", want: []string{"the image none of container main cannot be pulled (ErrImagePull: not found)", "A pod that never starts is active, not failed"},
			settled: imageNotFound,
		},
		"unschedulable": {
			spec:  batchv1.JobSpec{Template: nowhere(shell("true", corev1.RestartPolicyNever))},
			state: "Stuck", want: []string{"no node takes it:"},
		},
		"unmanaged": {
			spec:  batchv1.JobSpec{ManagedBy: new("example.com/nobody"), Template: shell("true", corev1.RestartPolicyNever)},
			state: "Unmanaged", want: []string{`it asks for the controller "example.com/nobody"`},
		},
		"complete": {
			spec:  batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)},
			state: "Complete", want: []string{"Reached expected number of succeeded pods (CompletionsReached)"},
		},
	}
	namespace := newNamespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := createJob(t, namespace, name, tc.spec)
			if tc.settled != nil {
				tc.settled(t, job)
			}
			waitExplained(t, job, tc.state, tc.want...)
		})
	}
}

// A quota that takes no pods blocks a Job, and explain names it.
func TestExplainNamesTheQuota(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	limitPods(t, client, namespace, "no-pods", "0")
	job := createJob(t, namespace, "blocked", batchv1.JobSpec{Template: shell("true", corev1.RestartPolicyNever)})
	waitExplained(t, job, "Blocked", "exceeded quota: no-pods", "Raise the quota")
}

// A mistake on the command line, and a Job that is not there, have exit codes of
// their own.
func TestExplainTellsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no such Job": {[]string{"explain", "job/nothing"}, 3, `jobs.batch "nothing" not found`},
		"no name":     {[]string{"explain"}, 2, "expected one job/NAME"},
	} {
		out, err := kubectlJobpolicy(t, "default", tc.args...)
		if exitCode(err) != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %v, want exit code %d and %q:\n%s", name, err, tc.code, tc.want, out)
		}
	}
}

// onAbsentNode binds the pods to a node that has no kubelet: the test is its kubelet.
func onAbsentNode(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.NodeName = "explained-by-hand"
	return template
}

// nowhere asks for a node that is not there.
func nowhere(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "nowhere"}
	return template
}

// imageNotFound writes the status that a kubelet writes when an image is not there.
func imageNotFound(t *testing.T, job *batchv1.Job) {
	t.Helper()
	eventually(t, "the pod is there", func() (bool, string) {
		pods := jobPods(t, job)
		if len(pods) == 0 {
			return false, "no pod"
		}
		pod := pods[0]
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Image: "none", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
		}}
		_, err := client.CoreV1().Pods(job.Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{})
		if err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

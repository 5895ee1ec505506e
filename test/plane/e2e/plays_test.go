package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/must"
)

// What simulate says of a Job of the cluster is what became of it: Jobs whose containers
// are restarted in their pods, and one whose pods have a deadline.
func TestPlaysComeTrue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cases := map[string]struct {
		script string
		// restarts is how many restarts show that the Job goes on for ever; 0: it ends.
		restarts int32
	}{
		"container-onfailure": {script: "*:fail(3)@1s", restarts: 2},
		"container-always":    {script: "*:succeed@1s", restarts: 2},
		"restart-rules":       {script: "*:fail(42)@1s", restarts: 2},
		"pod-deadline":        {script: "*:hang"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("../../../services/internal/plugin/testdata/kubelet/" + name + ".yaml")
			must.Succeed(t, err)
			var manifest batchv1.Job
			must.Succeed(t, yaml.UnmarshalStrict(data, &manifest))
			createJob(t, namespace, name, manifest.Spec)
			job := waitJob(t, namespace, name, "finished or restarted for ever", func(job *batchv1.Job) bool {
				return isFinished(job) || tc.restarts > 0 && restartsOf(jobPods(t, job)) >= tc.restarts
			})
			out, err := kubectlJobpolicy(t, namespace, "simulate", "--from", "job/"+name, "--pod", tc.script, "-o", "json")
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			var play struct {
				Verdict, Reason, Stopped string
				Pods                     []struct{}
				Status                   batchv1.JobStatus
			}
			if err := json.Unmarshal([]byte(out), &play); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if tc.restarts > 0 != strings.Contains(play.Stopped, "is restarted for ever") {
				t.Errorf("the play stops %q", play.Stopped)
			}
			played := &batchv1.Job{Status: play.Status}
			if got, want := endOf(job), endOf(played); got != want {
				t.Errorf("the Job ended as %+v, its play as %+v", got, want)
			}
			if pods := jobPods(t, job); len(pods) != len(play.Pods) {
				t.Errorf("the Job had %d pods, its play %d", len(pods), len(play.Pods))
			}
		})
	}
}

func restartsOf(pods []corev1.Pod) int32 {
	n := int32(0)
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			n += s.RestartCount
		}
	}
	return n
}

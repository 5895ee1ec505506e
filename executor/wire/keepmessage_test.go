package wire

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Only pods of Jobs that ask for it keep what their containers say, also if the template was made of such a pod.
func TestWhichPodsKeepWhatTheirContainersSay(t *testing.T) {
	for name, tc := range map[string]struct {
		options *jobpolicyv1.JobOptions
		want    string
	}{
		"without options":    {nil, ""},
		"with other options": {&jobpolicyv1.JobOptions{EndCondition: true}, ""},
		"asked for":          {&jobpolicyv1.JobOptions{EndCondition: true, EndConditionFailures: new(int32(1))}, "true"},
	} {
		job := &batchv1.Job{}
		job.Spec.Template.Annotations = map[string]string{podcache.KeepTerminationMessageAnnotation: "true"}
		pod := NewPods(job, tc.options, &jobpolicyv1.CreatePods{Count: 1})[0].From(job)
		if got := pod.Annotations[podcache.KeepTerminationMessageAnnotation]; got != tc.want {
			t.Errorf("%s: the annotation is %q, want %q", name, got, tc.want)
		}
		pod.UID = "00000000-0000-0000-0000-000000000001"
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "first\nlast\n"},
		}}}}
		facts, err := Pod(pod)
		want := map[string]string{"true": "last"}[tc.want]
		if err != nil || len(facts.Exits) != 1 || facts.Exits[0].GetTerminationMessage() != want {
			t.Errorf("%s: the request says %v (%v), want %q", name, facts.Exits, err, want)
		}
	}
	job := &batchv1.Job{}
	if pod := NewPods(job, nil, &jobpolicyv1.CreatePods{Count: 1})[0].From(job); len(pod.Annotations) > 0 {
		t.Errorf("a pod of a Job without options has annotations %v", pod.Annotations)
	}
}

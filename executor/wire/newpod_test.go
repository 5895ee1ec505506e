package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestNewPodsAreMadeOfTheTemplate(t *testing.T) {
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "1", Controller: &yes, BlockOwnerDeletion: &yes}}
	index := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"},
	}}
	own := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", Value: "mine"}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "1"}}
	job.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"job": "1"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"example.com/f"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "i"}},
			Containers:     []corev1.Container{{Name: "c"}, {Name: "own", Env: []corev1.EnvVar{own}}},
		},
	}
	plain := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", GenerateName: "job-", Labels: map[string]string{"job": "1"}, Annotations: map[string]string{"a": "b"},
			Finalizers: []string{"example.com/f", "batch.kubernetes.io/job-tracking"}, OwnerReferences: owner,
		},
		Spec: job.Spec.Template.Spec,
	}
	withIndex := func(more map[string]string) *corev1.Pod {
		pod := plain.DeepCopy()
		pod.GenerateName, pod.Spec.Hostname = "job-7-", "job-7"
		pod.Labels["batch.kubernetes.io/job-completion-index"] = "7"
		pod.Annotations["batch.kubernetes.io/job-completion-index"] = "7"
		for k, v := range more {
			pod.Annotations["batch.kubernetes.io/"+k] = v
		}
		pod.Spec.InitContainers[0].Env = []corev1.EnvVar{index}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{index}
		return pod
	}
	cases := map[string]struct {
		index    int32
		failures *jobpolicyv1.IndexFailureCount
		want     *corev1.Pod
	}{
		"without an index": {index: podcache.NoIndex, want: plain},
		"with an index":    {index: 7, want: withIndex(nil)},
		"the first of its index, with a limit by index": {
			index: 7, failures: &jobpolicyv1.IndexFailureCount{}, want: withIndex(map[string]string{"job-index-failure-count": "0"}),
		},
		"after failures of its index": {
			index: 7, failures: &jobpolicyv1.IndexFailureCount{Failures: 2, IgnoredFailures: 1},
			want: withIndex(map[string]string{"job-index-failure-count": "2", "job-index-ignored-failure-count": "1"}),
		},
	}
	before := job.DeepCopy()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NewPod{Index: tc.index, failures: tc.failures}.From(job)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(before, job); diff != "" {
		t.Errorf("the Job was changed (-before +after):\n%s", diff)
	}
}

// A pod may be active as long as the decision says, or the template if that is shorter.
func TestADeadlineIsLowered(t *testing.T) {
	for template, want := range map[int64]int64{30: 30, 60: 60, 90: 60, 0: 60} {
		job := &batchv1.Job{}
		if template > 0 {
			job.Spec.Template.Spec.ActiveDeadlineSeconds = new(template)
		}
		before := job.DeepCopy()
		for _, p := range NewPods(job, nil, &jobpolicyv1.CreatePods{Count: 1, ActiveDeadlineSeconds: new(int64(60))}) {
			if got := p.From(job).Spec.ActiveDeadlineSeconds; got == nil || *got != want {
				t.Errorf("with %ds in the template (0: none) a pod may be active for %v, want %d", template, got, want)
			}
		}
		if diff := cmp.Diff(before, job); diff != "" {
			t.Errorf("the Job was changed (-before +after):\n%s", diff)
		}
	}
}

// A Job that was made of a pod of another Job begins with what its template asks for.
func TestTheTemplateSaysNoStep(t *testing.T) {
	job := &batchv1.Job{}
	job.Spec.Template.Annotations = map[string]string{podcache.ResourceStepAnnotation: "3"}
	for _, p := range NewPods(job, nil, &jobpolicyv1.CreatePods{Count: 1}) {
		if step, has := p.From(job).Annotations[podcache.ResourceStepAnnotation]; has {
			t.Errorf("the pod has step %q, want none", step)
		}
	}
	if job.Spec.Template.Annotations[podcache.ResourceStepAnnotation] != "3" {
		t.Error("the Job was changed")
	}
}

func TestALongJobNameLeavesTheIndexInThePodName(t *testing.T) {
	name := strings.Repeat("x", 63)
	got := indexedGenerateName(name, "12345")
	if want := strings.Repeat("x", 51) + "-12345-"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

package world

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A new pod is what the template says, with its index wherever programs look for it.
func TestNewPods(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "j"}}
	job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	job.Spec.Template.Labels = map[string]string{"app": "x"}
	job.Spec.Template.Spec = corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}}, Containers: []corev1.Container{{Name: "c"}}}
	created := func() *corev1.Pod {
		template := job.Spec.Template.DeepCopy()
		setIndex(template, "1", "a")
		admit(&template.Spec)
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name, pod.GenerateName, pod.Finalizers = "a-1-abcde", "a-1-", []string{batchv1.JobTrackingFinalizer}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "j", Controller: new(true), BlockOwnerDeletion: new(true)}}
		return pod
	}
	if wrong := wrongNewPod(job, created()); wrong != "" {
		t.Error(wrong)
	}
	for name, spoil := range map[string]func(*corev1.Pod){
		"another name":                    func(p *corev1.Pod) { p.Name = "b-1-abcde" },
		"another prefix":                  func(p *corev1.Pod) { p.GenerateName = "a-" },
		"no label of the template":        func(p *corev1.Pod) { delete(p.Labels, "app") },
		"another label":                   func(p *corev1.Pod) { p.Labels["more"] = "x" },
		"no index in a label":             func(p *corev1.Pod) { delete(p.Labels, batchv1.JobCompletionIndexAnnotation) },
		"another index in the annotation": func(p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = "2" },
		"a count of failures":             func(p *corev1.Pod) { p.Annotations[batchv1.JobIndexFailureCountAnnotation] = "0" },
		"no controller":                   func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
		"no finalizer":                    func(p *corev1.Pod) { p.Finalizers = nil },
		"no host name":                    func(p *corev1.Pod) { p.Spec.Hostname = "" },
		"an init container without index": func(p *corev1.Pod) { p.Spec.InitContainers[0].Env = nil },
		"another image":                   func(p *corev1.Pod) { p.Spec.Containers[0].Image = "x" },
	} {
		pod := created()
		if spoil(pod); wrongNewPod(job, pod) == "" {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

// A run is what the template says, under the name of its time.
func TestNewRuns(t *testing.T) {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	cron.Spec.JobTemplate.Labels = map[string]string{"app": "x"}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	created := func() *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "c-31557600", UID: "j", Labels: map[string]string{"app": "x"}}}
		job.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at.Format(time.RFC3339)}
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "c", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true)}}
		job.Spec = defaulted(batchv1.JobSpec{}, job)
		return job
	}
	if wrong := wrongNewRun(cron, created()); wrong != "" {
		t.Error(wrong)
	}
	for name, spoil := range map[string]func(*batchv1.Job){
		"another name":           func(j *batchv1.Job) { j.Name = "c-31557601" },
		"no label":               func(j *batchv1.Job) { j.Labels = nil },
		"another annotation":     func(j *batchv1.Job) { j.Annotations["more"] = "x" },
		"as if it was asked for": func(j *batchv1.Job) { j.Annotations["cronjob.kubernetes.io/instantiate"] = "manual" },
		"another owner":          func(j *batchv1.Job) { j.OwnerReferences[0].UID = "v" },
		"another spec":           func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(7)) },
	} {
		job := created()
		if spoil(job); wrongNewRun(cron, job) == "" {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

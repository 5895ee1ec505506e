package explain_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"jobpolicy.dev/services/explain"
)

func limitedTo(memory string) []corev1.Container {
	return []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
	}}}
}

// What a pod got more of, because others have failed, is named with what the template says.
func TestExplainNamesRaisedResources(t *testing.T) {
	limited := job(func(j *batchv1.Job) { j.Spec.Template.Spec.Containers = limitedTo("64Mi") })
	active := func(memory, step string) []corev1.Pod {
		return []corev1.Pod{pod(1, corev1.PodRunning, func(p *corev1.Pod) {
			p.Spec.Containers = limitedTo(memory)
			p.Annotations = map[string]string{"jobpolicy.dev/resource-step": step}
		})}
	}
	explainEach(t, map[string]reportCase{
		"raised": {
			facts: explain.Facts{Job: limited, Pods: active("256Mi", "2")}, state: explain.Running,
			says: []string{"note: nextTryResources: Container main of pod job-1 asks for 256Mi of memory, the template for 64Mi: pods before it failed"},
		},
		"as the template says": {facts: explain.Facts{Job: limited, Pods: active("64Mi", "2")}, state: explain.Running, silent: []string{"nextTryResources"}},
		"for the next pods": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers = limitedTo("64Mi")
				j.Annotations = map[string]string{"jobpolicy.dev/policy": "{job: {nextTryResources: {resource: Memory, factor: 3, max: 1Gi}}}"}
				j.Spec.ManagedBy = new("jobpolicy.dev/executor")
			}), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(137, time.Hour), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
				p.Finalizers = nil
			})}},
			state: explain.Waiting, says: []string{"note: nextTryResources: The next pods ask for up to 3 times the memory of the template, at most 1Gi"},
		},
		"for none, as all ask for more": {
			facts: explain.Facts{Job: job(func(j *batchv1.Job) {
				j.Spec.Template.Spec.Containers = limitedTo("1Gi")
				j.Annotations = map[string]string{"jobpolicy.dev/policy": "{job: {nextTryResources: {resource: Memory, max: 512Mi}}}"}
				j.Spec.ManagedBy = new("jobpolicy.dev/executor")
			}), Pods: []corev1.Pod{pod(1, corev1.PodFailed, failedWith(137, time.Hour), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
				p.Finalizers = nil
			})}},
			state: explain.Waiting, silent: []string{"note: nextTryResources"},
		},
		"by another hand": {facts: explain.Facts{Job: limited, Pods: active("256Mi", "")}, state: explain.Running, silent: []string{"nextTryResources"}},
	})
}

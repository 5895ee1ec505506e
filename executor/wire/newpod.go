package wire

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/newerfields"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	completionIndexEnv = "JOB_COMPLETION_INDEX"
	// maxGenerateName is how much of a prefix the API server keeps when it
	// generates a name. A longer one loses its end, where the index stands.
	maxGenerateName = 58
)

// NewPod is a pod that a decision creates.
type NewPod struct {
	// Index is the pod's completion index; podcache.NoIndex unless the Job is Indexed.
	Index int32
	// failures are the counts that the pod inherits from the one before it; nil if the Job
	// does not limit failures by index.
	failures *jobpolicyv1.IndexFailureCount
	// deadline is how many seconds the pod may be active; nil: as the template says.
	deadline *int64
	// raised says what the pod gets more of than the template says; nil: nothing.
	raised *jobpolicyv1.RaisedPods
	// keepMessage: what its containers say at their end is to be kept.
	keepMessage bool
}

// NewPods lists the pods that a decision creates for a Job with these options, those of an Indexed Job in ascending
// order.
func NewPods(job *batchv1.Job, options *jobpolicyv1.JobOptions, create *jobpolicyv1.CreatePods) []NewPod {
	var pods []NewPod
	for _, p := range answer.NewPods(create) {
		if Indexed(job) != (p.Index != nil) {
			continue // The decision is about another kind of Job.
		}
		pod := NewPod{Index: podcache.NoIndex, deadline: create.ActiveDeadlineSeconds, raised: p.Raised, keepMessage: options.GetEndConditionFailures() > 0}
		if p.Index != nil {
			pod.Index = *p.Index
		}
		if job.Spec.BackoffLimitPerIndex != nil {
			pod.failures = &jobpolicyv1.IndexFailureCount{Index: pod.Index, Failures: p.Failures, IgnoredFailures: p.IgnoredFailures}
		}
		pods = append(pods, pod)
	}
	return pods
}

// From makes the pod from the Job's template, with the tracking finalizer, the Job as its
// controller, and its index in all places where programs look for it. It also has the template's
// fields of package newerfields. The pod shares memory with the template, so it is to be sent and
// must not be changed.
func (p NewPod) From(job *batchv1.Job) *corev1.Pod {
	template := &job.Spec.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			GenerateName:    job.Name + "-",
			Labels:          cloneMap(template.Labels),
			Annotations:     cloneMap(template.Annotations),
			Finalizers:      withFinalizer(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, JobKind)},
		},
		Spec: template.Spec,
	}
	delete(pod.Annotations, podcache.ResourceStepAnnotation) // A template that was made of a raised pod.
	delete(pod.Annotations, podcache.KeepTerminationMessageAnnotation)
	newerfields.Pod(pod, job)
	if p.Index != podcache.NoIndex {
		setIndex(pod, job.Name, p.Index)
	}
	if p.failures != nil {
		setFailureCounts(pod, p.failures)
	}
	if own := pod.Spec.ActiveDeadlineSeconds; p.deadline != nil && (own == nil || *own > *p.deadline) {
		pod.Spec.ActiveDeadlineSeconds = p.deadline
	}
	if p.raised != nil {
		raiseResources(pod, p.raised)
	}
	if p.keepMessage {
		pod.Annotations[podcache.KeepTerminationMessageAnnotation] = "true"
	}
	return pod
}

func cloneMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

func withFinalizer(finalizers []string) []string {
	if slices.Contains(finalizers, batchv1.JobTrackingFinalizer) {
		return slices.Clone(finalizers)
	}
	return append(slices.Clone(finalizers), batchv1.JobTrackingFinalizer)
}

// setIndex gives the pod its completion index in all places where programs look
// for it.
func setIndex(pod *corev1.Pod, jobName string, index int32) {
	number := strconv.Itoa(int(index))
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = number
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = number
	pod.GenerateName = indexedGenerateName(jobName, number)
	pod.Spec.Hostname = jobName + "-" + number
	pod.Spec.InitContainers = withIndexEnv(pod.Spec.InitContainers)
	pod.Spec.Containers = withIndexEnv(pod.Spec.Containers)
}

func indexedGenerateName(jobName, number string) string {
	suffix := "-" + number + "-"
	return jobName[:min(len(jobName), maxGenerateName-len(suffix))] + suffix
}

var indexEnv = corev1.EnvVar{
	Name: completionIndexEnv,
	ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
	}},
}

// withIndexEnv returns copies of the containers with the index in an environment variable.
// If the template sets that variable, it keeps the value.
func withIndexEnv(containers []corev1.Container) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		c := &containers[i]
		if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == completionIndexEnv }) {
			c.Env = append(slices.Clip(c.Env), indexEnv)
		}
	}
	return containers
}

func setFailureCounts(pod *corev1.Pod, failures *jobpolicyv1.IndexFailureCount) {
	pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(int(failures.GetFailures()))
	if n := failures.GetIgnoredFailures(); n > 0 {
		pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(int(n))
	}
}

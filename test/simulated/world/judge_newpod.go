package world

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// judgeNewPod: a pod that an executor creates is what the Job's template says, and names its Job. A pod of an Indexed Job has its
// index in annotation, label, host name, name and environment (Kubernetes' documentation of Jobs, "Completion mode").
func (j *judge) judgeNewPod(w apiserver.Write, r *jobRecord, pod *corev1.Pod) {
	var wrong string
	for _, job := range j.recent(r) {
		if wrong = wrongNewPod(job, pod); wrong == "" {
			return
		}
	}
	j.breach("pod", r.key, r.uid, "%s created pod %s, and %s", w.By, w.Key.Name, wrong)
}

// wrongNewPod says how a new pod differs from what a version of its Job asks for; empty if it does not. Three options change what a
// template says: judgeTryDeadline and judgeRaised look at the fields of two. judgeDelay looks at the counts of failures.
func wrongNewPod(job *batchv1.Job, pod *corev1.Pod) string {
	want, prefix := job.Spec.Template.DeepCopy(), job.Name
	maps.DeleteFunc(want.Annotations, func(key, _ string) bool { return key == podcache.ResourceStepAnnotation })
	if delete(want.Annotations, podcache.KeepTerminationMessageAnnotation); toldFailures(job) > 0 {
		want.Annotations = maps.Clone(want.Annotations)
		if want.Annotations == nil {
			want.Annotations = map[string]string{}
		}
		want.Annotations[podcache.KeepTerminationMessageAnnotation] = "true"
	}
	if ledger.IsIndexed(job) {
		index := pod.Annotations[batchv1.JobCompletionIndexAnnotation]
		setIndex(want, index, job.Name)
		prefix += "-" + index
	}
	name := pattern(`^` + regexp.QuoteMeta(prefix) + `-[a-z0-9]{5}$`)
	_, perIndexCount := pod.Annotations[batchv1.JobIndexFailureCountAnnotation]
	got := map[string]string{}
	for key, value := range pod.Annotations {
		switch key {
		case batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation, podcache.ResourceStepAnnotation:
			if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 {
				return sprint("annotation %s is %q", key, value)
			}
		default:
			got[key] = value
		}
	}
	owner := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true), BlockOwnerDeletion: new(true)}}
	switch {
	case len(prefix) <= 57 && !name.MatchString(pod.Name):
		return sprint("its name is not %s", name)
	case pod.GenerateName != prefix+"-" && len(prefix) <= 57:
		return sprint("its name is generated from %q", pod.GenerateName)
	case perIndexCount != perIndex(job):
		return "it has a count of failures only if the Job limits failures by index"
	case !equality.Semantic.DeepEqual(pod.OwnerReferences, owner):
		return sprint("its owner is %v", pod.OwnerReferences)
	case !equality.Semantic.DeepEqual(pod.Labels, want.Labels):
		return sprint("its labels are %v, not %v", pod.Labels, want.Labels)
	case !equality.Semantic.DeepEqual(got, want.Annotations):
		return sprint("its annotations are %v, not %v", got, want.Annotations)
	case !slices.Equal(pod.Finalizers, append(want.Finalizers, batchv1.JobTrackingFinalizer)):
		return sprint("its finalizers are %v", pod.Finalizers)
	}
	if diff := specDifference(want.Spec, pod.Spec); diff != "" {
		return diff
	}
	return ""
}

// setIndex puts the index of a pod wherever programs look for it. A template that sets the variable keeps its own value.
func setIndex(template *corev1.PodTemplateSpec, index, jobName string) {
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, batchv1.JobCompletionIndexAnnotation, index)
	metav1.SetMetaDataLabel(&template.ObjectMeta, batchv1.JobCompletionIndexAnnotation, index)
	template.Spec.Hostname = jobName + "-" + index
	const name = "JOB_COMPLETION_INDEX"
	for _, containers := range [][]corev1.Container{template.Spec.InitContainers, template.Spec.Containers} {
		for i := range containers {
			env := &containers[i].Env
			if !slices.ContainsFunc(*env, func(v corev1.EnvVar) bool { return v.Name == name }) {
				*env = append(*env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
					APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
				}}})
			}
		}
	}
}

// specDifference compares what a template says with a pod, without what options may change and what the API server sets.
func specDifference(template, pod corev1.PodSpec) string {
	for _, spec := range []*corev1.PodSpec{&template, &pod} {
		*spec = *spec.DeepCopy()
		spec.ActiveDeadlineSeconds = nil
		for i := range spec.Containers {
			spec.Containers[i].Resources = corev1.ResourceRequirements{}
		}
	}
	admit(&template)
	if equality.Semantic.DeepEqual(template, pod) {
		return "" // Most are, and a difference takes much longer to tell.
	}
	if diff := cmp.Diff(template, pod, cmpopts.EquateEmpty(), cmp.Comparer(resource.Quantity.Equal)); diff != "" {
		return "its spec differs from what the template says (-template +pod): " + diff
	}
	return ""
}

// admit sets what the API server sets in a new pod: defaults that a template does not have, and what the
// admission plugins DefaultTolerationSeconds and Priority add.
func admit(spec *corev1.PodSpec) {
	set(&spec.EnableServiceLinks, true)
	set(&spec.Priority, 0)
	set(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == key }) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
		}
	}
}

// set sets what is not set.
func set[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

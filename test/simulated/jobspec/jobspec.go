package jobspec

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Simpler returns the specs with one field less, or with one that is simpler.
func Simpler(spec *batchv1.JobSpec) []batchv1.JobSpec {
	var out []batchv1.JobSpec
	for _, f := range Fields {
		if f.simpler == nil {
			continue
		}
		simpler := spec.DeepCopy()
		f.simpler(simpler)
		if !equality.Semantic.DeepEqual(spec, simpler) {
			out = append(out, *simpler)
		}
	}
	return out
}

// CanEnd reports whether a field other than completions and the deadline can end the Job.
func CanEnd(spec *batchv1.JobSpec) bool {
	return slices.ContainsFunc(Fields, func(f Field) bool { return f.Decides && f.Has(spec) })
}

// Reasons are the reasons for which a field may let a Job fail, except one.
func Reasons(except string) []string {
	var out []string
	for _, f := range Fields {
		if f.Reason != "" && f.Reason != except {
			out = append(out, f.Reason)
		}
	}
	return out
}

// ContainerNames are the names of all containers of a Job's pods, the main ones first.
func ContainerNames(spec *batchv1.JobSpec) []string {
	var names []string
	for _, c := range slices.Concat(spec.Template.Spec.Containers, spec.Template.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	return names
}

// Sidecar reports whether an init container runs beside the main ones.
func Sidecar(c corev1.Container) bool {
	return valueOr(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// Indexed reports whether the pods of a Job have indexes.
func Indexed(s *batchv1.JobSpec) bool {
	return valueOr(s.CompletionMode, "") == batchv1.IndexedCompletion
}

func isNumber(p *int32, want int32) bool { return p != nil && *p == want }

// lower changes a number that is larger than another one to that one.
func lower(p *int32, most int32) {
	if p != nil {
		*p = min(*p, most)
	}
}

func valueOr[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

package conformance

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// maxShrunk limits how many failing cases are shrunk. If more fail, the cause is easy
// to see without a small script.
const maxShrunk = 6

// shrinkAll replaces failing results by those of smaller cases.
func shrinkAll(t *testing.T, results []result) {
	shrunk := 0
	for i, r := range results {
		if r.problem == "" || r.unfit || shrunk == maxShrunk {
			continue
		}
		shrunk++
		results[i] = shrink(t, r)
	}
}

// shrink searches for a shorter script and a simpler Job that still show a difference.
// It removes one step or field at a time, and continues with the first variant that
// fails.
func shrink(t *testing.T, failing result) result {
	for _, c := range failing.c.simpler() {
		if r := run(t, c); r.problem != "" && !r.unfit {
			return shrink(t, r)
		}
	}
	return failing
}

// simpler are the cases with one step less, or one field of the spec less.
func (c *Case) simpler() []*Case {
	var cases []*Case
	variant := func() *Case {
		v := *c
		v.next, v.Steps, v.Spec = nil, slices.Clone(c.Steps), *c.Spec.DeepCopy()
		cases = append(cases, &v)
		return &v
	}
	for i := range c.Steps {
		v := variant()
		v.Steps = slices.Delete(v.Steps, i, i+1)
	}
	for _, drop := range dropped(&c.Spec) {
		v := variant()
		drop(&v.Spec)
		v.specChanged = true
	}
	return cases
}

// dropped are the specs with one field less.
func dropped(s *batchv1.JobSpec) []change {
	var drops []change
	drop := func(has bool, c change) {
		if has {
			drops = append(drops, c)
		}
	}
	drop(s.ManagedBy != nil, func(s *batchv1.JobSpec) { s.ManagedBy = nil })
	drop(s.Suspend != nil, func(s *batchv1.JobSpec) { s.Suspend = nil })
	drop(s.BackoffLimit != nil, func(s *batchv1.JobSpec) { s.BackoffLimit = nil })
	drop(s.ActiveDeadlineSeconds != nil, func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = nil })
	drop(s.TTLSecondsAfterFinished != nil, func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = nil })
	drop(s.MaxFailedIndexes != nil, func(s *batchv1.JobSpec) { s.MaxFailedIndexes = nil })
	drop(s.BackoffLimitPerIndex != nil, func(s *batchv1.JobSpec) { s.BackoffLimitPerIndex, s.MaxFailedIndexes = nil, nil })
	drop(s.PodReplacementPolicy != nil, func(s *batchv1.JobSpec) { s.PodReplacementPolicy = nil })
	drop(s.PodFailurePolicy != nil, func(s *batchv1.JobSpec) { s.PodFailurePolicy = nil })
	drop(s.SuccessPolicy != nil, func(s *batchv1.JobSpec) { s.SuccessPolicy = nil })
	drop(len(s.Template.Spec.InitContainers) > 0, func(s *batchv1.JobSpec) { s.Template.Spec.InitContainers = nil })
	drop(s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever, func(s *batchv1.JobSpec) {
		s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	})
	return drops
}

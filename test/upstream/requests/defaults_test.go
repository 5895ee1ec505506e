package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"pgregory.net/rapid"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/executor/wire"
)

// sparse is a Job of which anything may be absent that the API server has a default for.
func (d *drawer) sparse() *batchv1.Job {
	job := &batchv1.Job{Spec: batchv1.JobSpec{
		Parallelism:          maybe(d, "parallelism", int32(0), 2),
		Completions:          maybe(d, "completions", int32(3)),
		BackoffLimit:         maybe(d, "backoffLimit", int32(0), 1),
		BackoffLimitPerIndex: maybe(d, "backoffLimitPerIndex", int32(1)),
		CompletionMode:       maybe(d, "mode", batchv1.IndexedCompletion, batchv1.NonIndexedCompletion),
		Suspend:              maybe(d, "suspend", true, false),
		PodReplacementPolicy: new(pick(d, "replacement", batchv1.Failed, batchv1.TerminatingOrFailed)),
		Template:             corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
	}}
	if rapid.Bool().Draw(d.T, "failure policy") {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: "Odd", Status: pick(d, "pattern", append(statuses, "")...)}},
		}}}
	}
	return job
}

// A spec that is part of another kind of object has not passed through the API server. It means the
// same as one that has.
func TestASpecHasTheDefaultsOfTheAPIServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &drawer{T: t}
		job := d.sparse()
		stored := job.DeepCopy()
		legacyscheme.Scheme.Default(stored)
		got, err := wire.JobSpec(job)
		must.Succeed(t, err)
		want, err := wire.JobSpec(stored)
		must.Succeed(t, err)
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("spec (-with defaults +without):\n%s", diff)
		}
	})
}

package wire

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Defaults of the API server. Only a spec that did not pass through it lacks the fields, for
// example one that is part of another kind of object.
const (
	defaultBackoffLimit = 6
	// defaultBackoffLimitOfIndexes is that of a Job that limits failures by index.
	defaultBackoffLimitOfIndexes = math.MaxInt32
	defaultPatternStatus         = corev1.ConditionTrue
)

// Indexed reports whether the Job has completionMode Indexed.
func Indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// KnownCompletionMode reports whether the contract has the Job's completion mode.
func KnownCompletionMode(job *batchv1.Job) bool {
	mode := job.Spec.CompletionMode
	return mode == nil || *mode == batchv1.IndexedCompletion || *mode == batchv1.NonIndexedCompletion
}

// FinishedCondition is the Job's Complete or Failed condition; nil while it is not
// finished.
func FinishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

// PodReplacementPolicy is the Job's policy, with the API server's default.
func PodReplacementPolicy(job *batchv1.Job) batchv1.PodReplacementPolicy {
	return ptr.Deref(job.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
}

// JobSpec picks the facts of a Job's spec that policy reads, with the API
// server's defaults for what is absent. It fails for a success policy whose index
// set is malformed.
func JobSpec(job *batchv1.Job) (*jobpolicyv1.JobSpec, error) {
	in := &job.Spec
	policy, problems := jobOptions(job)
	out := &jobpolicyv1.JobSpec{
		CompletionMode:          jobpolicyv1.CompletionMode_COMPLETION_MODE_NON_INDEXED,
		Parallelism:             ptr.Deref(in.Parallelism, 1),
		Completions:             completions(in),
		BackoffLimit:            backoffLimit(in),
		BackoffLimitPerIndex:    in.BackoffLimitPerIndex,
		MaxFailedIndexes:        in.MaxFailedIndexes,
		ActiveDeadlineSeconds:   in.ActiveDeadlineSeconds,
		Suspend:                 ptr.Deref(in.Suspend, false),
		RestartPolicy:           restartPolicies[in.Template.Spec.RestartPolicy],
		PodReplacementPolicy:    replacementMessage(in.PodReplacementPolicy),
		PodFailurePolicy:        failurePolicyMessage(in.PodFailurePolicy),
		TtlSecondsAfterFinished: in.TTLSecondsAfterFinished,
		Deleting:                job.DeletionTimestamp != nil,
		HasSchedulingGroup:      in.Template.Spec.SchedulingGroup != nil,
		Options:                 policy,
		OptionProblems:          problems,
		Controlled:              metav1.GetControllerOfNoCopy(job) != nil,
		GroupTemplateName:       GroupTemplateName(job),
		Scheduling:              schedulingMessage(in.Scheduling),
	}
	if Indexed(job) {
		out.CompletionMode = jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
	}
	var err error
	if out.SuccessPolicy, err = successPolicyMessage(in.SuccessPolicy); err != nil {
		return nil, fmt.Errorf("successPolicy: %w", err)
	}
	return out, nil
}

// groupTemplateAnnotation is on a Job whose controller leaves it to the Job to make a PodGroup from a
// template in the controller's Workload (pkg/apis/scheduling of Kubernetes v1.37).
const groupTemplateAnnotation = "scheduling.k8s.io/group-template-name"

// longestTemplateName is the contract's limit; no template has such a name.
const longestTemplateName = 4096

// GroupTemplateName is the name of that template; nil without the annotation. An empty name is the first
// template.
func GroupTemplateName(job *batchv1.Job) *string {
	name, ok := job.Annotations[groupTemplateAnnotation]
	if !ok {
		return nil
	}
	name = strings.ToValidUTF8(name, "")
	return new(name[:min(len(name), longestTemplateName)])
}

func schedulingMessage(in *batchv1.JobSchedulingConfiguration) *jobpolicyv1.JobScheduling {
	if in == nil {
		return nil
	}
	out := &jobpolicyv1.JobScheduling{Policy: jobpolicyv1.SchedulingPolicy_SCHEDULING_POLICY_BASIC}
	if policy := in.SchedulingPolicy; policy != nil && policy.Gang != nil {
		out.Policy, out.MinCount = jobpolicyv1.SchedulingPolicy_SCHEDULING_POLICY_GANG, policy.Gang.MinCount
	}
	return out
}

// completions are one for a Job that sets neither completions nor parallelism. With parallelism
// alone, their number is open.
func completions(in *batchv1.JobSpec) *int32 {
	if in.Completions == nil && in.Parallelism == nil {
		return new(int32(1))
	}
	return in.Completions
}

func backoffLimit(in *batchv1.JobSpec) int32 {
	switch {
	case in.BackoffLimit != nil:
		return *in.BackoffLimit
	case in.BackoffLimitPerIndex != nil:
		return defaultBackoffLimitOfIndexes
	default:
		return defaultBackoffLimit
	}
}

func replacementMessage(p *batchv1.PodReplacementPolicy) jobpolicyv1.PodReplacementPolicy {
	switch {
	case p == nil:
		return jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_UNSPECIFIED
	case *p == batchv1.Failed:
		return jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_FAILED
	default:
		return jobpolicyv1.PodReplacementPolicy_POD_REPLACEMENT_POLICY_TERMINATING_OR_FAILED
	}
}

func failurePolicyMessage(in *batchv1.PodFailurePolicy) *jobpolicyv1.PodFailurePolicy {
	if in == nil {
		return nil
	}
	out := &jobpolicyv1.PodFailurePolicy{}
	for _, rule := range in.Rules {
		m := &jobpolicyv1.PodFailurePolicyRule{Action: failurePolicyActions[rule.Action]}
		if on := rule.OnExitCodes; on != nil {
			m.OnExitCodes = &jobpolicyv1.ExitCodesRequirement{
				ContainerName: on.ContainerName, Operator: exitCodeOperators[on.Operator], Values: on.Values,
			}
		}
		for _, pattern := range rule.OnPodConditions {
			m.OnPodConditions = append(m.OnPodConditions, &jobpolicyv1.PodConditionPattern{
				Type: string(pattern.Type), Status: conditionStatusMessage(cmp.Or(pattern.Status, defaultPatternStatus)),
			})
		}
		out.Rules = append(out.Rules, m)
	}
	return out
}

func successPolicyMessage(in *batchv1.SuccessPolicy) (*jobpolicyv1.SuccessPolicy, error) {
	if in == nil {
		return nil, nil
	}
	out := &jobpolicyv1.SuccessPolicy{}
	for _, rule := range in.Rules {
		m := &jobpolicyv1.SuccessPolicyRule{SucceededCount: rule.SucceededCount}
		if rule.SucceededIndexes != nil {
			set, err := ParseIndexes(*rule.SucceededIndexes)
			if err != nil {
				return nil, err
			}
			m.SucceededIndexes = set
		}
		out.Rules = append(out.Rules, m)
	}
	return out, nil
}

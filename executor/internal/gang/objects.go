package gang

import (
	"fmt"
	"hash/fnv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/scheduling/schedulingv1/workloadbuilder"
	"k8s.io/utils/dump"

	"jobpolicy.dev/executor/wire"
)

// NewWorkload is the Workload of a Job: one template, for all its pods, with what the Job's
// spec.scheduling says and the priority class of its pods. minCount 0 stands for the policy Basic.
func NewWorkload(job *batchv1.Job, minCount int32) (*schedulingv1beta1.Workload, error) {
	declared := job.Spec.Scheduling
	if declared == nil {
		declared = &batchv1.JobSchedulingConfiguration{}
	}
	policy := &workloadbuilder.SchedulingPolicy{Basic: &workloadbuilder.BasicSchedulingPolicy{}}
	if minCount > 0 {
		policy = &workloadbuilder.SchedulingPolicy{Gang: &workloadbuilder.GangSchedulingPolicy{MinCount: &minCount}}
	}
	item := &workloadbuilder.WorkloadItem{
		Name:          templateName(job),
		DefaultConfig: &workloadbuilder.SchedulingConfig{Policy: policy, PriorityClassName: job.Spec.Template.Spec.PriorityClassName},
		Input: workloadbuilder.WorkloadInput{ // Without the policy: the engine has read it.
			Constraints:    workloadbuilder.ConstraintsInput{PodGroupData: declared.SchedulingConstraints},
			DisruptionMode: workloadbuilder.DisruptionModeInput{PodGroupData: declared.DisruptionMode},
			ResourceClaims: workloadbuilder.ResourceClaimsInput{PodGroupData: declared.ResourceClaims},
		},
	}
	return workloadbuilder.NewBuilder(item, workloadbuilder.BuildOptions{
		Name: WorkloadName(job), Namespace: job.Namespace, Owner: metav1.NewControllerRef(job, wire.JobKind),
	}).BuildWorkload()
}

// NewPodGroup is the PodGroup of a template of the Job's own Workload. The Job controls it. The
// Workload is an owner, too; that does not delay the Workload's deletion.
func NewPodGroup(job *batchv1.Job, w *schedulingv1beta1.Workload, template string) (*schedulingv1beta1.PodGroup, error) {
	group, err := newDelegatedPodGroup(job, w, template)
	if err != nil {
		return nil, err
	}
	group.OwnerReferences = append(group.OwnerReferences, metav1.OwnerReference{
		APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Workload", Name: w.Name, UID: w.UID,
	})
	return group, nil
}

// newDelegatedPodGroup is the PodGroup of a template of a Workload of somebody else.
func newDelegatedPodGroup(job *batchv1.Job, w *schedulingv1beta1.Workload, template string) (*schedulingv1beta1.PodGroup, error) {
	group, err := workloadbuilder.NewBuilderFromExistingWorkload(w, workloadbuilder.BuildOptions{
		Owner: metav1.NewControllerRef(job, wire.JobKind),
	}).NewPodGroup(PodGroupName(w.Name, template), template)
	if err != nil {
		return nil, fmt.Errorf("pod group: %w", err)
	}
	return group, nil
}

// WorkloadName is <job>-<hash of the Job's UID>, as the built-in controller (v1.37) names it, so that
// tools find it. A later Job of the same name gets another name (invariant I8).
func WorkloadName(job *batchv1.Job) string {
	hash := hashed(dump.ForHash(job.UID))
	return cutName(job.Name, validation.DNS1123SubdomainMaxLength-len(hash)-1) + "-" + hash
}

// PodGroupName is <workload>-<template>-<hash of both>, as the built-in controller (v1.37) names it. If
// that is too long, each part is cut to half of what there is, or to what the other one leaves.
func PodGroupName(workload, template string) string {
	hash := hashed(workload + template)
	room := validation.DNS1123SubdomainMaxLength - len(hash) - 2
	if len(workload)+len(template) > room {
		half := room / 2
		workload = cutName(workload, max(room-half, room-len(template)))
		template = cutName(template, max(half, room-len(workload)))
	}
	return workload + "-" + template + "-" + hash
}

// templateName is <job>-pgt-0. It is a DNS label: a dot becomes a hyphen, and what is too long is cut.
// The built-in controller (v1.37) does neither, so it cannot start such Jobs.
func templateName(job *batchv1.Job) string {
	const suffix = "-pgt-0"
	return cutName(strings.ReplaceAll(job.Name, ".", "-"), validation.DNS1123LabelMaxLength-len(suffix)) + suffix
}

func hashed(text string) string {
	sum := fnv.New32a()
	sum.Write([]byte(text))
	return rand.SafeEncodeString(fmt.Sprint(sum.Sum32()))
}

// cutName cuts a name to the length, and removes hyphens and dots at its end, so that a
// hyphen may follow.
func cutName(name string, length int) string {
	return strings.TrimRight(name[:min(len(name), length)], "-.")
}

// InPodGroup returns the Job with a template whose pods name the PodGroup; an empty name changes
// nothing. The PodGroup does not become an owner of the pods. It exists until they have ended. So
// if it were an owner, the garbage collector would not delete the pods of a deleted Job.
func InPodGroup(job *batchv1.Job, podGroup string) *batchv1.Job {
	if podGroup == "" {
		return job
	}
	grouped := job.DeepCopy()
	grouped.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &podGroup}
	return grouped
}

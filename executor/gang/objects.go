package gang

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/executor/wire"
)

// NewWorkload is the Workload of a Job: one template, for all its pods.
func NewWorkload(job *batchv1.Job, minCount int32) *schedulingv1beta1.Workload {
	return &schedulingv1beta1.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name:            WorkloadName(job),
			Namespace:       job.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, wire.JobKind)},
		},
		Spec: schedulingv1beta1.WorkloadSpec{
			ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{
				APIGroup: batchv1.GroupName, Kind: wire.JobKind.Kind, Name: job.Name,
			},
			PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{{
				Name: templateName(job),
				SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
					Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
				},
			}},
		},
	}
}

// NewPodGroup is the PodGroup of a Workload's first template. The Job controls it. The
// Workload is an owner, too; that does not delay the Workload's deletion.
func NewPodGroup(job *batchv1.Job, w *schedulingv1beta1.Workload) *schedulingv1beta1.PodGroup {
	template := &w.Spec.PodGroupTemplates[0]
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:      PodGroupName(w.Name, template.Name),
			Namespace: job.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(job, wire.JobKind),
				{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Workload", Name: w.Name, UID: w.UID},
			},
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			WorkloadRef:      &schedulingv1beta1.WorkloadReference{WorkloadName: w.Name, TemplateName: template.Name},
			SchedulingPolicy: *template.SchedulingPolicy.DeepCopy(),
		},
	}
}

// WorkloadName is <job>-<hash of the Job's UID>: a later Job of the same name gets another
// name (invariant I8).
func WorkloadName(job *batchv1.Job) string {
	return hashedName(string(job.UID), job.Name)
}

// PodGroupName is <workload>-<template>-<hash of both>.
func PodGroupName(workload, template string) string {
	return hashedName(workload+"/"+template, workload, template)
}

// templateName is <job>-pgt-0, cut to a DNS label. The built-in controller (v1.36) does
// not cut it, so it cannot create gangs for Jobs with names of more than 57 bytes.
func templateName(job *batchv1.Job) string {
	const suffix = "-pgt-0"
	return cutName(job.Name, validation.DNS1123LabelMaxLength-len(suffix)) + suffix
}

// hashedName joins the parts and the hash of a text. It cuts each part to an equal share
// of the longest allowed name.
func hashedName(text string, parts ...string) string {
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:5])
	share := (validation.DNS1123SubdomainMaxLength - len(hash) - len(parts)) / len(parts)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(cutName(part, share) + "-")
	}
	return b.String() + hash
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

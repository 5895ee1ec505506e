package wire

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of objects that control pods and Jobs.
var (
	JobKind     = batchv1.SchemeGroupVersion.WithKind("Job")
	CronJobKind = batchv1.SchemeGroupVersion.WithKind("CronJob")
)

// ControllerOf is the reference to the object of this kind that controls o; nil if none does.
// Group, kind and UID say who the controller is, never the version: one object may be served in
// several versions, and some clients still write one that was removed.
func ControllerOf(o metav1.Object, kind schema.GroupKind) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || KindOf(ref) != kind {
		return nil
	}
	return ref
}

// KindOf is the kind of object that a reference names, without its version.
func KindOf(ref *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// ControlsJob reports whether the CronJob controls the Job. An owner reference means an object in
// the namespace of the Job, whatever UID it has.
func ControlsJob(cron *batchv1.CronJob, job *batchv1.Job) bool {
	ref := ControllerOf(job, CronJobKind.GroupKind())
	return ref != nil && ref.UID == cron.UID && job.Namespace == cron.Namespace
}

// ControlsPod reports whether the Job controls the pod, as ControlsJob does.
func ControlsPod(job *batchv1.Job, pod metav1.Object) bool {
	ref := ControllerOf(pod, JobKind.GroupKind())
	return ref != nil && ref.UID == job.UID && pod.GetNamespace() == job.Namespace
}

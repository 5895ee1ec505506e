package executor

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
)

// keepLean is the pod informer's transform: every pod of the cluster is cached.
// What is no API object (a tombstone, what was transformed before) passes
// unchanged.
func keepLean(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return podcache.From(pod), nil
	}
	return obj, nil
}

// trimJobObject is the Job informer's transform. The template is needed to
// create pods, so a Job is kept but for its field ownership.
func trimJobObject(obj any) (any, error) {
	if job, ok := obj.(*batchv1.Job); ok {
		job.ManagedFields = nil
	}
	return obj, nil
}

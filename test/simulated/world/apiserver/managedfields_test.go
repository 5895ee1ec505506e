package apiserver

import (
	"strings"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/test/kit/objects"
)

// A server with Options.FieldManager records which client wrote which field, as a real one does.
func TestRecordsWhoWroteWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{FieldManager: func(by string) string { return by + "/of tests" }})
		creator, other := clientOf(s, "creator", true), clientOf(s, "other", true)
		job := family(t, creator)
		job.Status.Active = 1
		job = objects.UpdateStatus(t, other.BatchV1().Jobs(job.Namespace), job)
		if m := writerOf(job.ManagedFields, "status", `"f:active"`); m != "other" {
			t.Errorf("%q wrote how many pods are active: %v", m, job.ManagedFields)
		}
		pod, there := s.Get("pods", key("pod"))
		if !there {
			t.Fatal("no pod")
		}
		if m := writerOf(pod.(*corev1.Pod).ManagedFields, "", `"f:ownerReferences":{".":{}`); m != "creator" {
			t.Errorf("%q gave the pod its owner: %v", m, pod.(*corev1.Pod).ManagedFields)
		}
		patch := []byte(`[{"op": "remove", "path": "/metadata/finalizers"}]`)
		if _, err := other.CoreV1().Pods(job.Namespace).Patch(t.Context(), "pod", "application/json-patch+json", patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		pod, _ = s.Get("pods", key("pod"))
		if m := writerOf(pod.(*corev1.Pod).ManagedFields, "", batchv1.JobTrackingFinalizer); m != "" {
			t.Errorf("%q still holds the finalizer that is gone", m)
		}
	})
}

// writerOf is the manager whose fields contain a text.
func writerOf(entries []metav1.ManagedFieldsEntry, subresource, text string) string {
	for _, e := range entries {
		if e.Subresource == subresource && strings.Contains(string(e.FieldsV1.GetRawBytes()), text) {
			return e.Manager
		}
	}
	return ""
}

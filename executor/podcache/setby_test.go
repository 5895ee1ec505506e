package podcache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// What the API server records when a Job controller creates a pod, cut short, and when the
// garbage collector edits the owner reference.
const (
	creatorFields   = `{"f:metadata":{"f:finalizers":{".":{},"v:\"batch.kubernetes.io/job-tracking\"":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}}},"f:spec":{"f:restartPolicy":{}}}`
	collectorFields = `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}`
	kubeletFields   = `{"f:status":{"f:phase":{}}}`
)

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func ownedPod(managedFields ...metav1.ManagedFieldsEntry) *corev1.Pod {
	pod := testPod()
	pod.ManagedFields = managedFields
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "u", Controller: ptr.To(true)}}
	return pod
}

func TestWhoSetThePodsOwner(t *testing.T) {
	cases := map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		"nothing is recorded":                      {},
		"the creator, before others":               {[]metav1.ManagedFieldsEntry{entry("creator", "", creatorFields), entry("kubelet", "status", kubeletFields)}, "creator"},
		"the creator, after others":                {[]metav1.ManagedFieldsEntry{entry("kubelet", "status", kubeletFields), entry("creator", "", creatorFields)}, "creator"},
		"not who changed the reference later":      {[]metav1.ManagedFieldsEntry{entry("collector", "", collectorFields), entry("creator", "", creatorFields)}, "creator"},
		"not what a writer of a subresource holds": {[]metav1.ManagedFieldsEntry{entry("kubelet", "status", creatorFields)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := ownedPod(tc.fields...)
			for mediaType, codecs := range map[string]runtime.NegotiatedSerializer{
				runtime.ContentTypeProtobuf: Serializer(scheme.Codecs), runtime.ContentTypeJSON: scheme.Codecs,
			} {
				got, _, err := serializer(t, codecs, mediaType).Decode(encode(t, mediaType, pod), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				owner, ok := From(got.(*corev1.Pod)).Controller()
				if !ok || owner.SetBy != tc.want {
					t.Errorf("decoded as %s: owner %+v, want it set by %q", mediaType, owner, tc.want)
				}
			}
		})
	}
}

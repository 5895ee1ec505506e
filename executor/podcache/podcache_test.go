package podcache

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
)

func testMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "n", GenerateName: "n-", Namespace: "ns", ResourceVersion: "5",
		Labels: map[string]string{"l": "1"}, Finalizers: []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}},
	}
}

func testPod() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		ObjectMeta: testMeta(),
		Spec: corev1.PodSpec{
			NodeName: "node", Volumes: []corev1.Volume{{Name: "v"}}, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			InitContainers: []corev1.Container{{Name: "s", Image: "i", RestartPolicy: &always}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Message: "m", PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "m"}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", Image: "i", RestartCount: 3,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Message: "m"}},
			}},
		},
	}
}

// cachedPod is what is decoded of testPod.
func cachedPod() *corev1.Pod {
	p := testPod()
	p.GenerateName, p.ManagedFields = "", nil
	p.Spec.Volumes, p.Spec.Containers, p.Spec.InitContainers[0].Image = nil, nil, ""
	p.Status.Message, p.Status.PodIP, p.Status.Conditions[0].Message = "", "", ""
	p.Status.ContainerStatuses[0].Image = ""
	return p
}

func serializer(t rapid.TB, of runtime.NegotiatedSerializer, mediaType string) runtime.Serializer {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(of.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer of %s", mediaType)
	}
	return info.Serializer
}

func encode(t rapid.TB, mediaType string, obj runtime.Object) []byte {
	t.Helper()
	gv := corev1.SchemeGroupVersion
	if _, ok := obj.(*batchv1.Job); ok {
		gv = batchv1.SchemeGroupVersion
	}
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(serializer(t, scheme.Codecs, mediaType), gv), obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecode(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: testMeta(), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: testPod().Spec}}}
	event := &corev1.Event{ObjectMeta: testMeta(), Message: "m"}
	cases := map[string]struct {
		mediaType string
		obj, want runtime.Object
	}{
		"of a pod, what is kept": {mediaType: runtime.ContentTypeProtobuf, obj: testPod(), want: cachedPod()},
		"of a list, what is kept of its pods": {
			mediaType: runtime.ContentTypeProtobuf, obj: &corev1.PodList{Items: []corev1.Pod{*testPod()}},
			want: &corev1.PodList{Items: []corev1.Pod{*cachedPod()}},
		},
		"a pod without anything":                 {mediaType: runtime.ContentTypeProtobuf, obj: &corev1.Pod{}, want: &corev1.Pod{}},
		"of a Job, everything":                   {mediaType: runtime.ContentTypeProtobuf, obj: job, want: job},
		"of another object, everything":          {mediaType: runtime.ContentTypeProtobuf, obj: event, want: event},
		"of a pod in another format, everything": {mediaType: runtime.ContentTypeJSON, obj: testPod(), want: testPod()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := encode(t, tc.mediaType, tc.obj)
			before := bytes.Clone(data)
			got, _, err := serializer(t, Serializer(scheme.Codecs), tc.mediaType).Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			tc.want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			if !apiequality.Semantic.DeepEqual(tc.want, got) {
				t.Errorf("decoded (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
			if !bytes.Equal(before, data) {
				t.Error("the encoded object was changed")
			}
		})
	}
}

// What cannot be read is left to the decoder, which says what is wrong with it.
func TestTruncated(t *testing.T) {
	whole := serializer(t, scheme.Codecs, runtime.ContentTypeProtobuf)
	stripped := serializer(t, Serializer(scheme.Codecs), runtime.ContentTypeProtobuf)
	data := encode(t, runtime.ContentTypeProtobuf, testPod())
	refused := 0
	for end := range data {
		_, _, want := whole.Decode(data[:end], nil, nil)
		_, _, got := stripped.Decode(data[:end], nil, nil)
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("the first %d bytes of a pod: %v, want %v", end, got, want)
		}
		if got != nil {
			refused++
		}
	}
	if refused < len(data)*9/10 {
		t.Errorf("only %d of %d truncated pods were refused", refused, len(data))
	}
}

func BenchmarkDecode(b *testing.B) {
	data := encode(b, runtime.ContentTypeProtobuf, testPod())
	for name, codecs := range map[string]runtime.NegotiatedSerializer{"whole": scheme.Codecs, "stripped": Serializer(scheme.Codecs)} {
		s := serializer(b, codecs, runtime.ContentTypeProtobuf)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Decode(data, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

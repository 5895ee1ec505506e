package executor

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/leanpods"
)

// protobuf returns the serializer of pods on the wire.
func protobuf(t interface{ Fatal(...any) }, of runtime.NegotiatedSerializer) runtime.Serializer {
	info, ok := runtime.SerializerInfoForMediaType(of.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("there is no protobuf serializer")
	}
	return info.Serializer
}

func encoded(t interface{ Fatal(...any) }, obj runtime.Object) []byte {
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(protobuf(t, scheme.Codecs), corev1.SchemeGroupVersion), obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func trimmed(obj runtime.Object) []*corev1.Pod {
	switch o := obj.(type) {
	case *corev1.Pod:
		return []*corev1.Pod{trimPod(o)}
	case *corev1.PodList:
		var out []*corev1.Pod
		for i := range o.Items {
			out = append(out, trimPod(&o.Items[i]))
		}
		return out
	default:
		return nil
	}
}

// What trimPod keeps of a pod, leanpods decodes.
func TestLeanPodsKeepWhatIsKeptOfPods(t *testing.T) {
	plain, lean := protobuf(t, scheme.Codecs), protobuf(t, leanpods.Serializer(scheme.Codecs))
	rapid.Check(t, func(t *rapid.T) {
		filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(rapid.Int64().Draw(t, "seed")), scheme.Codecs)
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: make([]corev1.Pod, rapid.IntRange(0, 3).Draw(t, "pods"))}
		for i := range list.Items {
			filler.Fill(&list.Items[i])
			for a := range list.Items[i].Annotations {
				list.Items[i].Annotations[annotationPrefix+a] = "kept"
			}
		}
		objects := []runtime.Object{list}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		for _, obj := range objects {
			data := encoded(t, obj)
			want, wantKind, err := plain.Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, gotKind, err := lean.Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if *gotKind != *wantKind {
				t.Fatalf("kind %v, want %v", gotKind, wantKind)
			}
			if w, g := trimmed(want), trimmed(got); !apiequality.Semantic.DeepEqual(w, g) {
				t.Fatalf("trimmed (-decoded whole +decoded lean):\n%s", cmp.Diff(w, g))
			}
		}
		back, _, err := lean.Decode(encoded(t, list), nil, &corev1.PodList{})
		if err != nil || back.(*corev1.PodList).ResourceVersion != "7" {
			t.Fatalf("the list's own metadata: %v, %v", back, err)
		}
	})
}

// FuzzLeanPods does the same with bytes that no API server would send: what can
// be decoded decodes the same, and the rest is refused or, if the fault is in what
// is cut out, not seen.
func FuzzLeanPods(f *testing.F) {
	plain, lean := protobuf(f, scheme.Codecs), protobuf(f, leanpods.Serializer(scheme.Codecs))
	for _, ended := range []bool{false, true} {
		pod := testPod(1, func(pod *corev1.Pod) {
			pod.Spec = corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "i"}}}
			if ended {
				pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{
					Name: "c", RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
				}}}
			}
		})
		raw, err := pod.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Raw: raw}
		body, err := unknown.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		data := append([]byte("k8s\x00"), body...)
		want, _, err := plain.Decode(data, nil, nil)
		got, _, leanErr := lean.Decode(data, nil, nil)
		if err != nil {
			return
		}
		if leanErr != nil {
			t.Fatalf("decoded whole, but not lean: %v", leanErr)
		}
		if w, g := trimmed(want), trimmed(got); !apiequality.Semantic.DeepEqual(w, g) {
			t.Fatalf("trimmed (-decoded whole +decoded lean):\n%s", cmp.Diff(w, g))
		}
	})
}

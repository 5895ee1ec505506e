package podcache

import (
	"math/rand"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
)

// unexported lets fields that are not exported be compared.
var unexported = cmp.Exporter(func(reflect.Type) bool { return true })

func kept(obj runtime.Object) []*Pod {
	switch o := obj.(type) {
	case *corev1.Pod:
		return []*Pod{From(o)}
	case *corev1.PodList:
		var out []*Pod
		for i := range o.Items {
			out = append(out, From(&o.Items[i]))
		}
		return out
	default:
		return nil
	}
}

// drawStart draws what says why a pod does not start.
func drawStart(t *rapid.T, pod *corev1.Pod) {
	for _, conditionType := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers} {
		if status := rapid.SampledFrom([]corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, string(conditionType)); status != "" {
			pod.Status.Conditions = append(pod.Status.Conditions, conditionAt(conditionType, status, "Unschedulable", metav1.Unix(2, 0)))
		}
	}
	if rapid.Bool().Draw(t, "never ran") {
		started := metav1.Unix(3, 0)
		pod.Status.StartTime, pod.Status.InitContainerStatuses = &started, nil
		message := rapid.SampledFrom([]string{"", "container has runAsNonRoot and image will run as root"}).Draw(t, "message")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitsFor(configError, message)}
	}
}

// fillWhatAJobReads gives a pod values that mean something to a Job.
func fillWhatAJobReads(t *rapid.T, pod *corev1.Pod) {
	pod.Annotations = map[string]string{
		batchv1.JobCompletionIndexAnnotation:          strconv.Itoa(rapid.IntRange(-1, 9).Draw(t, "index")),
		batchv1.JobIndexFailureCountAnnotation:        strconv.Itoa(rapid.IntRange(-1, 9).Draw(t, "failures")),
		batchv1.JobIndexIgnoredFailureCountAnnotation: strconv.Itoa(rapid.IntRange(-1, 9).Draw(t, "ignored")),
	}
	if rapid.Bool().Draw(t, "says") {
		pod.Annotations[KeepTerminationMessageAnnotation] = "true"
	}
	if rapid.Bool().Draw(t, "held") {
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if rapid.Bool().Draw(t, "controlled") {
		yes := true
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: "job", Controller: &yes})
		pod.Spec.Hostname = "job-" + strconv.Itoa(rapid.IntRange(-1, 9).Draw(t, "host"))
	}
	pod.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}).Draw(t, "phase")
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type:   corev1.PodReady,
		Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready"), LastTransitionTime: metav1.Unix(1, 0),
	})
	drawStart(t, pod)
	if rapid.Bool().Draw(t, "sidecar") {
		always := corev1.ContainerRestartPolicyAlways
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "side", RestartPolicy: &always})
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: "side", RestartCount: rapid.Int32Range(0, 3).Draw(t, "restarts"),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Unix(3, 0)}},
		})
	}
	if rapid.Bool().Draw(t, "unscheduled") {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: rapid.SampledFrom([]string{"Unschedulable", "SchedulingGated", ""}).Draw(t, "why"),
		})
	}
	if rapid.Bool().Draw(t, "containers wait") {
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not kept"}
		}
	}
	if rapid.Bool().Draw(t, "containers ended") {
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].State.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 1, FinishedAt: metav1.Unix(2, 0), Reason: "OOMKilled", Signal: 9, Message: "first\nlast",
			}
		}
	}
	if rapid.Bool().Draw(t, "containers were restarted") {
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: 1, FinishedAt: metav1.Unix(int64(i), 0), Reason: "OOMKilled", Message: "last",
			}
		}
	}
}

// What From keeps of a pod, Serializer decodes.
func TestCachedPodsKeepTheFactsOfPods(t *testing.T) {
	plain, stripped := serializer(t, scheme.Codecs, runtime.ContentTypeProtobuf), serializer(t, Serializer(scheme.Codecs), runtime.ContentTypeProtobuf)
	rapid.Check(t, func(t *rapid.T) {
		filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(rapid.Int64().Draw(t, "seed")), scheme.Codecs)
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: make([]corev1.Pod, rapid.IntRange(0, 3).Draw(t, "pods"))}
		for i := range list.Items {
			filler.Fill(&list.Items[i])
			fillWhatAJobReads(t, &list.Items[i])
		}
		objects := []runtime.Object{list}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		for _, obj := range objects {
			data := encode(t, runtime.ContentTypeProtobuf, obj)
			want, wantKind, err := plain.Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, gotKind, err := stripped.Decode(data, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if *gotKind != *wantKind {
				t.Fatalf("kind %v, want %v", gotKind, wantKind)
			}
			if diff := cmp.Diff(kept(want), kept(got), unexported); diff != "" {
				t.Fatalf("kept (-decoded whole +decoded stripped):\n%s", diff)
			}
		}
		back, _, err := stripped.Decode(encode(t, runtime.ContentTypeProtobuf, list), nil, &corev1.PodList{})
		if err != nil || back.(*corev1.PodList).ResourceVersion != "7" {
			t.Fatalf("the list's own metadata: %v, %v", back, err)
		}
	})
}

// FuzzCachedPods does the same with arbitrary bytes. Both decoders give the same pod, or the
// bytes are refused. A fault in a part that is skipped is not noticed.
func FuzzCachedPods(f *testing.F) {
	plain, stripped := serializer(f, scheme.Codecs, runtime.ContentTypeProtobuf), serializer(f, Serializer(scheme.Codecs), runtime.ContentTypeProtobuf)
	for _, pod := range []*corev1.Pod{{}, testPod()} {
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
		got, _, strippedErr := stripped.Decode(data, nil, nil)
		if err != nil {
			return
		}
		if strippedErr != nil {
			t.Fatalf("decoded whole, but not stripped: %v", strippedErr)
		}
		if diff := cmp.Diff(kept(want), kept(got), unexported); diff != "" {
			t.Fatalf("kept (-decoded whole +decoded stripped):\n%s", diff)
		}
	})
}

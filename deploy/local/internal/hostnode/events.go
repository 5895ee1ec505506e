package hostnode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
)

// eventSink takes events about a pod, or about one of its containers if its name is not empty.
type eventSink interface {
	note(pod *corev1.Pod, container, reason, message string)
	warn(pod *corev1.Pod, container, reason, message string)
}

// podEvents sends events as the kubelet does: by component kubelet, with the container as the field path.
type podEvents struct{ recorder record.EventRecorder }

// newPodEvents sends events until ctx ends. They are a courtesy: when the API server is slow, they are dropped.
func newPodEvents(ctx context.Context, client kubernetes.Interface, node string) podEvents {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return podEvents{broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: node})}
}

func (e podEvents) note(pod *corev1.Pod, container, reason, message string) {
	e.send(pod, container, corev1.EventTypeNormal, reason, message)
}

func (e podEvents) warn(pod *corev1.Pod, container, reason, message string) {
	e.send(pod, container, corev1.EventTypeWarning, reason, message)
}

func (e podEvents) send(pod *corev1.Pod, container, kind, reason, message string) {
	ref, err := reference.GetReference(scheme.Scheme, pod)
	if err != nil {
		return // only for a type that is not in the scheme
	}
	ref.FieldPath = containerPath(pod, container)
	e.recorder.Event(ref, kind, reason, message)
}

func containerPath(pod *corev1.Pod, container string) string {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == container {
			return fmt.Sprintf("spec.initContainers{%s}", container)
		}
	}
	if container == "" {
		return ""
	}
	return fmt.Sprintf("spec.containers{%s}", container)
}

package hostnode

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// fieldValue reads a field path of the downward API. The addresses are those that the node gives every pod, whether or not
// the status says so already. A label or annotation that is absent has the empty value.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return nodeIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

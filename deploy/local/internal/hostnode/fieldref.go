package hostnode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podFields are the plain field paths that an environment variable can take its value from. The addresses are those
// that the node gives every pod, whether or not the status says so already.
var podFields = map[string]func(*corev1.Pod) string{
	"metadata.name":           func(p *corev1.Pod) string { return p.Name },
	"metadata.namespace":      func(p *corev1.Pod) string { return p.Namespace },
	"metadata.uid":            func(p *corev1.Pod) string { return string(p.UID) },
	"spec.nodeName":           func(p *corev1.Pod) string { return p.Spec.NodeName },
	"spec.serviceAccountName": func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
	"status.hostIP":           func(*corev1.Pod) string { return nodeIP },
	"status.hostIPs":          func(*corev1.Pod) string { return nodeIP },
	"status.podIP":            func(*corev1.Pod) string { return nodeIP },
	"status.podIPs":           func(*corev1.Pod) string { return nodeIP },
}

// fieldValue reads a field path of the downward API: a name in podFields, metadata.labels['KEY'] or
// metadata.annotations['KEY']. A key that is absent has the empty value.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	if read, ok := podFields[path]; ok {
		return read(pod), nil
	}
	for prefix, values := range map[string]map[string]string{
		"metadata.labels['":      pod.Labels,
		"metadata.annotations['": pod.Annotations,
	} {
		key, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if key, ok = strings.CutSuffix(key, "']"); ok {
			return values[key], nil
		}
	}
	return "", fmt.Errorf("field path %q has no value here", path)
}

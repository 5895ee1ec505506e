package podcache

import corev1 "k8s.io/api/core/v1"

// Node is the node of a pod that is being deleted, and empty for any other pod; also if no node has taken it.
func (p *Pod) Node() string { return p.phase.Value().node }

// nodeOf is the node of a pod that is being deleted.
func nodeOf(pod *corev1.Pod) string {
	if pod.DeletionTimestamp == nil {
		return ""
	}
	return pod.Spec.NodeName
}

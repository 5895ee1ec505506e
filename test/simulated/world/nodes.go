package world

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// Only Jobs with the option terminationDeadlineNode look at nodes, so only worlds with such Jobs have objects for them: one for
// all pods, which is always Ready, and one for each pod whose node is lost.

// readsNodes reports whether a Job of the plan looks at nodes.
func (p *plan) readsNodes() bool {
	return slices.ContainsFunc(p.jobs, func(j *jobPlan) bool { return strings.Contains(j.annotations[wire.Policy], "terminationDeadlineNode") })
}

// ownNode is the node of a pod that has one for itself.
func ownNode(pod *corev1.Pod) string {
	return strings.Join([]string{nodeName, pod.Namespace, pod.Name}, "-")
}

func (k *kubelets) createNode(name string) {
	if _, there := k.w.server.Get("nodes", types.NamespacedName{Name: name}); there {
		return // The pod could not be bound before.
	}
	k.w.server.CreateNode(kubeletName, name)
	k.setNode(kubeletName, name, corev1.ConditionTrue)
}

// setNode sets the condition Ready of a node.
func (k *kubelets) setNode(by, name string, ready corev1.ConditionStatus) {
	k.w.server.Update(by, "nodes", "status", types.NamespacedName{Name: name}, func(obj runtime.Object) {
		if node, ok := obj.(*corev1.Node); ok {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		}
	})
}

// loseNode has the control plane notice that the node of a pod does not answer, unless it does.
func (k *kubelets) loseNode(pod *corev1.Pod, f fate) {
	if f.alone && f.unready != forEver {
		k.after(f.unready, pod, func(p *corev1.Pod) { k.setNode(nodeLifecycle, ownNode(p), corev1.ConditionUnknown) })
	}
}

// A nodeRecord is what a judge knows of a node. lostAt is when it was first not Ready, or gone; zero: it was always Ready.
type nodeRecord struct {
	ready  bool
	lostAt time.Time
}

func (j *judge) nodeWritten(w apiserver.Write) {
	n := j.nodes[w.Key.Name]
	if n == nil {
		n = &nodeRecord{}
		j.nodes[w.Key.Name] = n
	}
	node, there := w.New.(*corev1.Node)
	ready := there && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if n.ready && !ready && n.lostAt.IsZero() { // A node that is new has no pods yet.
		n.lostAt = w.Time
	}
	n.ready = ready
}

package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
)

// createSystemNamespaces makes the namespaces that the API server itself makes.
func (s *Server) createSystemNamespaces() {
	for _, name := range []string{
		metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
	} {
		ctx := s.as(&caller{server: s, by: "apiserver", verb: "create"}, "namespaces", types.NamespacedName{Name: name})
		creater := s.endpoint("namespaces", "").storage.(rest.Creater)
		_, err := creater.Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		check(err)
	}
}

// emptying reports whether a namespace is being deleted.
func (s *Server) emptying() bool {
	return slices.ContainsFunc(s.versions("namespaces", ""), func(v *version) bool { return v.meta().GetDeletionTimestamp() != nil })
}

// emptyNamespaces does what the namespace controller does to namespaces that are
// being deleted.
func (c *collector) emptyNamespaces() {
	for _, o := range c.objects {
		if o.resource == "namespaces" && o.GetDeletionTimestamp() != nil && !c.emptyNamespace(o) {
			c.finalizeNamespace(o)
		}
	}
}

// emptyNamespace deletes the objects in the namespace: pods first, and the rest when they
// are gone. It reports whether there was any.
func (c *collector) emptyNamespace(namespace *object) bool {
	var pods, others []*object
	for _, o := range c.objects {
		switch {
		case o.key.Namespace != namespace.key.Name:
		case o.resource == "pods":
			pods = append(pods, o)
		default:
			others = append(others, o)
		}
	}
	next := pods
	if len(pods) == 0 {
		next = others
	}
	for _, o := range next {
		if o.GetDeletionTimestamp() == nil {
			c.delete(o, metav1.DeletePropagationBackground)
		}
	}
	return len(next) > 0
}

func (c *collector) finalizeNamespace(o *object) {
	v := c.server.current("namespaces", o.key)
	if v == nil || len(v.external.(*corev1.Namespace).Spec.Finalizers) == 0 {
		return
	}
	who := c.caller()
	who.subresource = "finalize"
	c.done(c.server.edit(who, "namespaces", o.key, func(obj runtime.Object) {
		obj.(*corev1.Namespace).Spec.Finalizers = nil
	}))
}

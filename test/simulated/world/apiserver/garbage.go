package apiserver

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// collector is one pass of the garbage collector and of the namespace controller,
// over the objects that existed when it began.
type collector struct {
	server *Server
	did    bool

	objects    []*object
	dependents map[types.UID][]*object
}

// An object is a stored version with its resource.
type object struct {
	resource string
	key      types.NamespacedName
	metav1.Object
}

const collectorName = "garbage-collector"

// CollectGarbage deletes objects without a living owner, continues foreground
// deletions and orphaning, and empties namespaces that are being deleted. It is
// one pass: its deletions may make another one necessary. It reports whether it did
// something.
func (s *Server) CollectGarbage() bool {
	c := &collector{server: s, dependents: map[types.UID][]*object{}}
	emptying := s.emptying()
	for _, r := range registries().stores {
		if r.resource == "events" && !emptying {
			continue // The garbage collector ignores them, and there are many.
		}
		for _, v := range s.versions(r.resource, "") {
			m := v.meta()
			o := &object{r.resource, types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, m}
			c.objects = append(c.objects, o)
			if r.resource == "events" {
				continue
			}
			for _, owner := range m.GetOwnerReferences() {
				c.dependents[owner.UID] = append(c.dependents[owner.UID], o)
			}
		}
	}
	for _, o := range c.objects {
		if o.resource != "events" {
			c.collect(o)
		}
	}
	c.emptyNamespaces()
	return c.did
}

// collect is attemptToDeleteItem and attemptToOrphan of the garbage collector.
func (c *collector) collect(o *object) {
	switch {
	case o.GetDeletionTimestamp() == nil:
		c.ask(o)
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		for _, dependent := range c.dependents[o.GetUID()] {
			c.disown(dependent, []types.UID{o.GetUID()})
		}
		c.unfinalize(o, metav1.FinalizerOrphanDependents)
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		if !c.blocked(o) {
			c.unfinalize(o, metav1.FinalizerDeleteDependents)
		}
	}
}

// blocked says whether a dependent holds up the foreground deletion of its owner.
func (c *collector) blocked(owner *object) bool {
	return slices.ContainsFunc(c.dependents[owner.GetUID()], func(o *object) bool {
		return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == owner.GetUID() && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
		})
	})
}

// ask deletes an object if none of its owners exists any more, and otherwise removes the
// owners that are gone.
func (c *collector) ask(o *object) {
	v := c.server.current(o.resource, o.key)
	if v == nil || v.meta().GetUID() != o.GetUID() {
		return
	}
	o.Object = v.meta()
	var solid bool
	var gone, waiting []types.UID
	for _, ref := range o.GetOwnerReferences() {
		owner, known := c.owner(o.key.Namespace, ref)
		switch {
		case !known:
			solid = true
		case owner == nil:
			gone = append(gone, ref.UID)
		case owner.GetDeletionTimestamp() != nil && slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents):
			waiting = append(waiting, ref.UID)
		default:
			solid = true
		}
	}
	switch {
	case len(gone)+len(waiting) == 0:
	case solid:
		c.disown(o, append(gone, waiting...))
	case len(waiting) > 0 && len(c.dependents[o.GetUID()]) > 0:
		c.delete(o, metav1.DeletePropagationForeground)
	default:
		c.delete(o, policyOf(o))
	}
}

// owner returns the owner if it exists, and whether its kind is served at all.
func (c *collector) owner(namespace string, ref metav1.OwnerReference) (metav1.Object, bool) {
	for _, r := range registries().stores {
		if r.kind != schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) {
			continue
		}
		if r.resource == "namespaces" {
			namespace = ""
		}
		v := c.server.current(r.resource, types.NamespacedName{Namespace: namespace, Name: ref.Name})
		if v == nil || v.meta().GetUID() != ref.UID {
			return nil, true
		}
		return v.meta(), true
	}
	return nil, false
}

// policyOf is the propagation policy that the finalizers of an object ask for.
func policyOf(o *object) metav1.DeletionPropagation {
	switch {
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func (c *collector) caller() *caller {
	return &caller{server: c.server, by: collectorName, verb: "collect"}
}

func (c *collector) delete(o *object, policy metav1.DeletionPropagation) {
	uid := o.GetUID()
	err := c.server.remove(c.caller(), o.resource, o.key, metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	c.done(err)
}

// disown removes owners from an object.
func (c *collector) disown(o *object, owners []types.UID) {
	c.edit(o, "", func(m metav1.Object) {
		m.SetOwnerReferences(slices.DeleteFunc(m.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return slices.Contains(owners, ref.UID)
		}))
	})
}

func (c *collector) unfinalize(o *object, finalizer string) {
	c.edit(o, "", func(m metav1.Object) {
		m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == finalizer }))
	})
}

// edit changes an object if it still has the UID that the collector has seen.
func (c *collector) edit(o *object, subresource string, change func(metav1.Object)) {
	who := c.caller()
	who.subresource = subresource
	c.done(c.server.edit(who, o.resource, o.key, func(obj runtime.Object) {
		if m, err := meta.Accessor(obj); err == nil && m.GetUID() == o.GetUID() {
			change(m)
		}
	}))
}

// done records that something changed. If another writer was faster, the object is left to
// the next pass.
func (c *collector) done(err error) {
	switch {
	case err == nil:
		c.did = true
	case !errors.IsNotFound(err) && !errors.IsConflict(err):
		panic(err)
	}
}

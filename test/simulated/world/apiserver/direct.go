package apiserver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
)

// current returns the stored version of an object.
func (s *Server) current(resource string, key types.NamespacedName) *version {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, served := s.tables[resource]
	if !served {
		panic("no resource " + resource) // A programming error.
	}
	return t.find(t.store.key(key.Namespace, key.Name))
}

// Get returns a copy of a stored object.
func (s *Server) Get(resource string, key types.NamespacedName) (runtime.Object, bool) {
	v := s.current(resource, key)
	if v == nil {
		return nil, false
	}
	return v.external.DeepCopyObject(), true
}

// List returns copies of the objects of a namespace, or of all if it is empty,
// in the order of their keys.
func (s *Server) List(resource, namespace string) []runtime.Object {
	var copies []runtime.Object
	for _, v := range s.versions(resource, namespace) {
		copies = append(copies, v.external.DeepCopyObject())
	}
	return copies
}

func (s *Server) versions(resource, namespace string) []*version {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, served := s.tables[resource]
	if !served {
		panic("no resource " + resource)
	}
	return slices.Clone(t.in(namespace))
}

// Update runs change on a copy of the stored object and commits the result as a
// write of by, with the rules of the resource or subresource. It reports false if the
// object is gone. It panics if the rules refuse the change, because that is a mistake of the
// caller.
func (s *Server) Update(by, resource, subresource string, key types.NamespacedName, change func(runtime.Object)) bool {
	err := s.edit(&caller{server: s, by: by, verb: "update", subresource: subresource}, resource, key, change)
	if err != nil && !errors.IsNotFound(err) {
		panic(fmt.Sprintf("%s may not update %s/%s %s: %v", by, resource, subresource, key, err))
	}
	return err == nil
}

func (s *Server) edit(c *caller, resource string, key types.NamespacedName, change func(runtime.Object)) error {
	e := s.endpoint(resource, c.subresource)
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, existing runtime.Object) (runtime.Object, error) {
		return e.change(existing, change)
	})
	_, _, err := e.storage.(rest.Updater).Update(s.as(c, resource, key), key.Name, info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// CreateNode creates a node as by. It panics if there is one of that name, because that is a mistake of the caller.
func (s *Server) CreateNode(by, name string) {
	key := types.NamespacedName{Name: name}
	creater := s.endpoint("nodes", "").storage.(rest.Creater)
	_, err := creater.Create(s.as(&caller{server: s, by: by, verb: "create"}, "nodes", key), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	check(err)
}

// Delete deletes an object as by, as a request would. It reports false if the
// object is gone.
func (s *Server) Delete(by, resource string, key types.NamespacedName, options metav1.DeleteOptions) bool {
	err := s.remove(&caller{server: s, by: by, verb: "delete"}, resource, key, options)
	if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
		panic(fmt.Sprintf("%s may not delete %s %s: %v", by, resource, key, err))
	}
	return err == nil
}

func (s *Server) remove(c *caller, resource string, key types.NamespacedName, options metav1.DeleteOptions) error {
	deleter := s.endpoint(resource, "").storage.(rest.GracefulDeleter)
	_, _, err := deleter.Delete(s.as(c, resource, key), key.Name, rest.ValidateAllObjectFunc, &options)
	return err
}

// Bind binds a pod to a node as by, as a request of a scheduler would.
func (s *Server) Bind(by string, pod types.NamespacedName, uid types.UID, node string) error {
	c := &caller{server: s, by: by, verb: "create", subresource: "binding"}
	e := s.endpoint("pods", c.subresource)
	admit := func(_ context.Context, obj runtime.Object) error {
		return s.admitToNamespace(admission.NewAttributesRecord(obj, nil, e.kind, pod.Namespace, pod.Name,
			corev1.SchemeGroupVersion.WithResource("pods"), c.subresource, admission.Create, nil, false, nil))
	}
	binding := &core.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: uid},
		Target:     core.ObjectReference{Kind: "Node", Name: node},
	}
	_, err := e.storage.(rest.NamedCreater).Create(s.as(c, "pods", pod), pod.Name, binding, admit, &metav1.CreateOptions{})
	return err
}

// as returns the context for a request that does not come over the wire.
func (s *Server) as(c *caller, resource string, key types.NamespacedName) context.Context {
	kind := registries().store(resource).kind
	ctx := request.WithRequestInfo(context.Background(), &request.RequestInfo{
		IsResourceRequest: true, Verb: c.verb, APIGroup: kind.Group, APIVersion: kind.Version,
		Resource: resource, Subresource: c.subresource, Namespace: key.Namespace, Name: key.Name,
	})
	return request.WithNamespace(withCaller(ctx, c), key.Namespace)
}

func (s *Server) endpoint(resource, subresource string) *endpoint {
	r := registries().store(resource)
	if r == nil {
		panic("no resource " + resource)
	}
	e, served := registries().endpoints[place{r.kind.Group, r.kind.Version, resource, subresource}]
	if !served {
		panic("no subresource " + subresource + " of " + resource)
	}
	return e
}

// change lets the caller change the external form of a copy of an internal object.
func (e *endpoint) change(existing runtime.Object, change func(runtime.Object)) (runtime.Object, error) {
	external, err := legacyscheme.Scheme.UnsafeConvertToVersion(existing.DeepCopyObject(), e.kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	change(external)
	return legacyscheme.Scheme.UnsafeConvertToVersion(external, hub(e.kind))
}

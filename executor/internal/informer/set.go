// Package informer watches objects of one kind: in all namespaces with one informer, or in
// some namespaces with one informer each. So what is known of a namespace has one resource
// version, and the client needs no rights in any other namespace. Pods are kept as package podcache
// decodes them; that package is separate, so that programs which only convert pods do not link a
// client of Kubernetes.
package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Set is the informers of one kind of objects, by namespace. One informer of all namespaces
// has the key metav1.NamespaceAll.
type Set struct {
	by map[string]cache.SharedIndexInformer
}

// New returns a Set of the informers that in makes: one for each namespace, or one for all
// if no namespace is named.
func New(namespaces []string, in func(namespace string) cache.SharedIndexInformer) *Set {
	if len(namespaces) == 0 {
		return All(in(metav1.NamespaceAll))
	}
	s := &Set{by: map[string]cache.SharedIndexInformer{}}
	for _, namespace := range namespaces {
		if s.by[namespace] == nil {
			s.by[namespace] = in(namespace)
		}
	}
	return s
}

// All returns a Set of one informer of all namespaces.
func All(informer cache.SharedIndexInformer) *Set {
	return &Set{by: map[string]cache.SharedIndexInformer{metav1.NamespaceAll: informer}}
}

// Key names the informer that has the objects of the namespace.
func (s *Set) Key(namespace string) string {
	if _, all := s.by[metav1.NamespaceAll]; all {
		return metav1.NamespaceAll
	}
	return namespace
}

// Versions returns the last resource version of each informer, by Key.
func (s *Set) Versions() map[string]string {
	versions := map[string]string{}
	for key, i := range s.by {
		versions[key] = i.LastSyncResourceVersion()
	}
	return versions
}

// In returns the informer that has the objects of the namespace. It panics if the namespace
// is not watched.
func (s *Set) In(namespace string) cache.SharedIndexInformer {
	if all, ok := s.by[metav1.NamespaceAll]; ok {
		return all
	}
	one, ok := s.by[namespace]
	if !ok {
		panic(fmt.Sprintf("namespace %q is not watched, so no object of it can be known", namespace))
	}
	return one
}

// Get returns an object by its name, as far as the informer shows it.
func (s *Set) Get(namespace, name string) (obj any, exists bool, err error) {
	return s.In(namespace).GetStore().GetByKey(namespace + "/" + name)
}

// List returns all objects that the informers show, in no order.
func (s *Set) List() (all []any) {
	for _, i := range s.by {
		all = append(all, i.GetStore().List()...)
	}
	return all
}

// IndexValues returns the keys of an index of all informers, in no order.
func (s *Set) IndexValues(index string) (all []string) {
	for _, i := range s.by {
		all = append(all, i.GetIndexer().ListIndexFuncValues(index)...)
	}
	return all
}

// SetTransform sets the transform of all informers. Call it before Run.
func (s *Set) SetTransform(transform cache.TransformFunc) error {
	return s.each(func(i cache.SharedIndexInformer) error { return i.SetTransform(transform) })
}

// WithoutManagedFields is a transform that removes the managed fields of objects.
func WithoutManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// AddIndexers adds indexers to all informers. Call it before Run.
func (s *Set) AddIndexers(indexers cache.Indexers) error {
	return s.each(func(i cache.SharedIndexInformer) error { return i.AddIndexers(indexers) })
}

// AddEventHandler adds a handler to all informers. Events of different namespaces may come
// at the same time. seen reports whether the handler has got all objects of the first
// lists.
func (s *Set) AddEventHandler(handler cache.ResourceEventHandler) (seen cache.InformerSynced, err error) {
	var synced []cache.InformerSynced
	err = s.each(func(i cache.SharedIndexInformer) error {
		registration, err := i.AddEventHandler(handler)
		if err == nil {
			synced = append(synced, registration.HasSynced)
		}
		return err
	})
	return func() bool {
		return !slices.ContainsFunc(synced, func(has cache.InformerSynced) bool { return !has() })
	}, err
}

// HasSynced reports whether the first lists are in the stores.
func (s *Set) HasSynced() bool {
	for _, i := range s.by {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// Run fills the stores and keeps them up to date until ctx ends.
func (s *Set) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, i := range s.by {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	running.Wait()
}

func (s *Set) each(f func(cache.SharedIndexInformer) error) error {
	for _, i := range s.by {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

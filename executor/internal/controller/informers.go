package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Informers watch objects of one kind: in all namespaces with one informer, whose key is
// metav1.NamespaceAll, or in some namespaces with one informer each. So what is known of a
// namespace has one resource version, and the client needs no rights in any other namespace.
type Informers struct {
	by map[string]cache.SharedIndexInformer
}

// NewInformers returns the Informers that in makes: one for each namespace, or one for all
// if no namespace is named.
func NewInformers(namespaces []string, in func(namespace string) cache.SharedIndexInformer) *Informers {
	if len(namespaces) == 0 {
		return OneInformer(in(metav1.NamespaceAll))
	}
	s := &Informers{by: map[string]cache.SharedIndexInformer{}}
	for _, namespace := range namespaces {
		if s.by[namespace] == nil {
			s.by[namespace] = in(namespace)
		}
	}
	return s
}

// OneInformer returns Informers of one informer of all namespaces.
func OneInformer(informer cache.SharedIndexInformer) *Informers {
	return &Informers{by: map[string]cache.SharedIndexInformer{metav1.NamespaceAll: informer}}
}

// Key names the informer that has the objects of the namespace.
func (s *Informers) Key(namespace string) string {
	if _, all := s.by[metav1.NamespaceAll]; all {
		return metav1.NamespaceAll
	}
	return namespace
}

// Versions returns the last resource version of each informer, by Key.
func (s *Informers) Versions() map[string]string {
	versions := map[string]string{}
	for key, i := range s.by {
		versions[key] = i.LastSyncResourceVersion()
	}
	return versions
}

// In returns the informer that has the objects of the namespace. It panics if the namespace
// is not watched.
func (s *Informers) In(namespace string) cache.SharedIndexInformer {
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
func (s *Informers) Get(namespace, name string) (obj any, exists bool, err error) {
	return s.In(namespace).GetStore().GetByKey(namespace + "/" + name)
}

// List returns all objects that the informers show, in no order.
func (s *Informers) List() (all []any) {
	for _, i := range s.by {
		all = append(all, i.GetStore().List()...)
	}
	return all
}

// IndexValues returns the keys of an index of all informers, in ascending order.
func (s *Informers) IndexValues(index string) (all []string) {
	for _, i := range s.by {
		all = append(all, i.GetIndexer().ListIndexFuncValues(index)...)
	}
	slices.Sort(all)
	return all
}

// SetTransform sets the transform of all informers. Call it before Run.
func (s *Informers) SetTransform(transform cache.TransformFunc) error {
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
func (s *Informers) AddIndexers(indexers cache.Indexers) error {
	return s.each(func(i cache.SharedIndexInformer) error { return i.AddIndexers(indexers) })
}

// AddEventHandler adds a handler to all informers. Events of different namespaces may come
// at the same time.
func (s *Informers) AddEventHandler(handler cache.ResourceEventHandler) error {
	return s.each(func(i cache.SharedIndexInformer) error {
		_, err := i.AddEventHandler(handler)
		return err
	})
}

// AddOrderedEventHandler does the same, except that the handler gets the objects of the first list of an
// informer ordered by name. seen reports whether the handler has got them; until it is called, or
// another event comes, the handler gets nothing.
func (s *Informers) AddOrderedEventHandler(handler cache.ResourceEventHandler) (seen cache.InformerSynced, err error) {
	var first []*firstList
	err = s.each(func(i cache.SharedIndexInformer) error {
		f := &firstList{handler: handler}
		registration, err := i.AddEventHandler(f)
		if err == nil {
			f.complete = registration.HasSynced
			first = append(first, f)
		}
		return err
	})
	return func() bool {
		return !slices.ContainsFunc(first, func(f *firstList) bool { return !f.seen() })
	}, err
}

// HasSynced reports whether the first lists are in the stores.
func (s *Informers) HasSynced() bool {
	for _, i := range s.by {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// Run fills the stores and keeps them up to date until ctx ends.
func (s *Informers) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, i := range s.by {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	running.Wait()
}

// each calls f with the informers, ordered by namespace.
func (s *Informers) each(f func(cache.SharedIndexInformer) error) error {
	for _, namespace := range slices.Sorted(maps.Keys(s.by)) {
		if err := f(s.by[namespace]); err != nil {
			return err
		}
	}
	return nil
}

package controller

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// A firstList gives a handler the objects of an informer's first list ordered by name, and all later events as
// they come. client-go passes that list in the order of a map. What follows from the order, such as which
// objects are worked on first, would differ with each start.
type firstList struct {
	handler cache.ResourceEventHandler
	// complete reports whether all objects of the list are here.
	complete cache.InformerSynced

	mu     sync.Mutex
	passed bool
	held   []any
}

// seen reports whether the handler has got the list, and gives it to the handler once it is complete.
func (f *firstList) seen() bool {
	if !f.complete() {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass()
	return true
}

// pass gives the list to the handler. f.mu must be held.
func (f *firstList) pass() {
	if f.passed {
		return
	}
	f.passed = true
	names := make(map[any]string, len(f.held))
	for _, obj := range f.held {
		names[obj], _ = cache.MetaNamespaceKeyFunc(obj) // The informer has stored the object by it.
	}
	slices.SortFunc(f.held, func(a, b any) int { return strings.Compare(names[a], names[b]) })
	for _, obj := range f.held {
		f.handler.OnAdd(obj, true)
	}
	f.held = nil
}

// OnAdd implements cache.ResourceEventHandler.
func (f *firstList) OnAdd(obj any, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first && !f.passed {
		f.held = append(f.held, obj)
		return
	}
	f.pass()
	f.handler.OnAdd(obj, first)
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *firstList) OnUpdate(old, obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass()
	f.handler.OnUpdate(old, obj)
}

// OnDelete implements cache.ResourceEventHandler.
func (f *firstList) OnDelete(obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass()
	f.handler.OnDelete(obj)
}

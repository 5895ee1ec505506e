package controller

import "k8s.io/client-go/tools/cache"

// Handler returns an event handler for objects of one type. seen gets the object and its
// version before, which is nil when the object is new. gone, which may be nil, gets the last
// known state of an object that was deleted.
func Handler[T any](seen func(old, object *T), gone func(object *T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen(nil, obj.(*T)) },
		UpdateFunc: func(old, obj any) { seen(old.(*T), obj.(*T)) },
		DeleteFunc: func(obj any) {
			if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = missed.Obj
			}
			if object, ok := obj.(*T); ok && gone != nil {
				gone(object)
			}
		},
	}
}

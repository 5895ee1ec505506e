package controller

import "k8s.io/client-go/tools/cache"

// Deleted returns the object that a delete handler is called with. If the deletion
// itself was missed, that is the last known state of the object.
func Deleted[T any](obj any) (T, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	object, ok := obj.(T)
	return object, ok
}

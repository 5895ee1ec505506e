// Package objects creates, reads, changes and deletes objects through the typed clients of client-go, for a test that
// cannot go on if that fails. The error of the API server names the object.
package objects

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Create creates an object, and returns it as it was stored.
func Create[T any](t testing.TB, client interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
}, object T,
) T {
	t.Helper()
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	return done(t, "create", created, err)
}

// Get reads an object.
func Get[T any](t testing.TB, client interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
}, name string,
) T {
	t.Helper()
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	return done(t, "get", object, err)
}

// List reads the objects that the options select.
func List[T any](t testing.TB, client interface {
	List(context.Context, metav1.ListOptions) (T, error)
}, options metav1.ListOptions,
) T {
	t.Helper()
	list, err := client.List(t.Context(), options)
	return done(t, "list", list, err)
}

// Patch changes an object by a JSON merge patch.
func Patch[T any](t testing.TB, client interface {
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}, name, patch string,
) T {
	t.Helper()
	object, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return done(t, "patch", object, err)
}

// Update replaces an object.
func Update[T any](t testing.TB, client interface {
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
}, object T,
) T {
	t.Helper()
	updated, err := client.Update(t.Context(), object, metav1.UpdateOptions{})
	return done(t, "update", updated, err)
}

// UpdateStatus replaces the status of an object.
func UpdateStatus[T any](t testing.TB, client interface {
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
}, object T,
) T {
	t.Helper()
	updated, err := client.UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
	return done(t, "update the status", updated, err)
}

// Delete deletes an object.
func Delete(t testing.TB, client interface {
	Delete(context.Context, string, metav1.DeleteOptions) error
}, name string, options metav1.DeleteOptions,
) {
	t.Helper()
	done(t, "delete", name, client.Delete(t.Context(), name, options))
}

func done[T any](t testing.TB, what string, result T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return result
}

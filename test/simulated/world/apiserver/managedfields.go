package apiserver

import (
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// endpointsWithFields are the endpoints of servers that record who wrote which field.
var endpointsWithFields = sync.OnceValue(func() map[place]*endpoint {
	all := map[place]*endpoint{}
	for at, e := range registries().endpoints {
		all[at] = newEndpoint(at, e.kind, e.storage, true)
	}
	return all
})

var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(legacyscheme.Scheme)
})

// fieldManager returns the field manager that a real server has for a resource.
func fieldManager(kind schema.GroupVersionKind, subresource string, storage rest.Storage) *managedfields.FieldManager {
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if r, ok := storage.(rest.ResetFieldsStrategy); ok {
		reset = fieldpath.NewExcludeFilterSetMap(r.GetResetFields())
	}
	return noError(managedfields.NewDefaultFieldManager(
		typeConverter(), legacyscheme.Scheme, legacyscheme.Scheme, legacyscheme.Scheme, kind, hub(kind), subresource, reset))
}

// noManagedFields returns a field manager to which all objects look empty. The handlers
// need one, but in most worlds nobody reads who set which field, and recording it takes
// longer than the rest of a request.
func noManagedFields(kind schema.GroupVersionKind, subresource string) *managedfields.FieldManager {
	empty := noError(typed.DeducedParseableType.FromUnstructured(map[string]any{}))
	return noError(managedfields.NewDefaultFieldManager(
		emptyObjects{empty}, asItIs{legacyscheme.Scheme}, legacyscheme.Scheme, legacyscheme.Scheme, kind, hub(kind), subresource, nil))
}

// emptyObjects takes each object for an empty one.
type emptyObjects struct{ empty *typed.TypedValue }

var errNoApply = errors.New("server-side apply is not served")

// ObjectToTyped implements managedfields.TypeConverter.
func (e emptyObjects) ObjectToTyped(runtime.Object, ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return e.empty, nil
}

// TypedToObject implements managedfields.TypeConverter.
func (emptyObjects) TypedToObject(*typed.TypedValue) (runtime.Object, error) { return nil, errNoApply }

// neverNew is the scheme for creations. The field manager compares a new object with an empty
// one from this scheme. This one looks like an existing object without managed fields, so the
// field manager changes nothing.
type neverNew struct{}

var existing = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "existing"}}

// New implements runtime.ObjectCreater.
func (neverNew) New(schema.GroupVersionKind) (runtime.Object, error) { return existing, nil }

// asItIs converts nothing, because nobody reads the result.
type asItIs struct{ runtime.ObjectConvertor }

// ConvertToVersion implements runtime.ObjectConvertor.
func (asItIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

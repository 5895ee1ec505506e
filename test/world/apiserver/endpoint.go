package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// largestBody is the limit of a real server on what a request may carry.
const largestBody = 3 << 20

// patchKinds are the patches that are understood. Server-side apply is refused:
// it needs managed fields, which are not kept here.
var patchKinds = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}

// An endpoint is what upstream's handlers make of a resource or subresource, by
// verb.
type endpoint struct {
	kind     schema.GroupVersionKind
	storage  rest.Storage
	handlers map[string]http.HandlerFunc
}

func newEndpoint(at place, kind schema.GroupVersionKind, storage rest.Storage) *endpoint {
	scope := newScope(at, kind, storage)
	verbs := map[string]http.HandlerFunc{}
	if r, ok := storage.(rest.Getter); ok {
		verbs["get"] = handlers.GetResource(r, scope)
	}
	if r, ok := storage.(rest.Lister); ok {
		list := handlers.ListResource(r, storage.(rest.Watcher), scope, false, 0)
		verbs["list"], verbs["watch"] = list, list
	}
	switch r := storage.(type) {
	case rest.NamedCreater:
		verbs["create"] = handlers.CreateNamedResource(r, scope, admitter{})
	case rest.Creater:
		verbs["create"] = handlers.CreateResource(r, scope, admitter{})
	}
	if r, ok := storage.(rest.Updater); ok {
		verbs["update"] = handlers.UpdateResource(r, scope, admitter{})
	}
	if r, ok := storage.(rest.Patcher); ok {
		verbs["patch"] = handlers.PatchResource(r, scope, admitter{}, patchKinds)
	}
	if r, ok := storage.(rest.GracefulDeleter); ok {
		verbs["delete"] = handlers.DeleteResource(r, true, scope, admitter{})
	}
	if r, ok := storage.(rest.CollectionDeleter); ok {
		verbs["deletecollection"] = handlers.DeleteCollection(r, true, scope, admitter{})
	}
	return &endpoint{kind: kind, storage: storage, handlers: verbs}
}

func newScope(at place, kind schema.GroupVersionKind, storage rest.Storage) *handlers.RequestScope {
	version := kind.GroupVersion()
	tables, _ := storage.(rest.TableConvertor)
	return &handlers.RequestScope{
		Namer:           handlers.ContextBasedNaming{Namer: runtime.Namer(meta.NewAccessor())},
		Serializer:      legacyscheme.Codecs,
		ParameterCodec:  legacyscheme.ParameterCodec,
		Creater:         legacyscheme.Scheme,
		Convertor:       legacyscheme.Scheme,
		Defaulter:       legacyscheme.Scheme,
		Typer:           legacyscheme.Scheme,
		UnsafeConvertor: runtime.UnsafeObjectConvertor(legacyscheme.Scheme),
		Authorizer:      authorizerfactory.NewAlwaysAllowAuthorizer(),

		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		TableConvertor:           tables,
		FieldManager:             noManagedFields(kind, at.subresource),

		Resource:         version.WithResource(at.resource),
		Subresource:      at.subresource,
		Kind:             kind,
		HubGroupVersion:  hub(kind),
		MetaGroupVersion: metav1.SchemeGroupVersion,

		MaxRequestBodyBytes: largestBody,
	}
}

package apiserver

import (
	"net/http"
	"time"

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

// largestBody is a real server's limit for the body of a request.
const largestBody = 3 << 20

// shortestWatch is how long a watch lasts at least if the client names no timeout. It lasts
// up to twice as long, at random.
const shortestWatch = 30 * time.Minute

// patchKinds are the supported patches. Server-side apply is refused, because most
// servers here keep no managed fields.
var patchKinds = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType)}

// An endpoint is a resource or subresource with upstream's handlers for it.
type endpoint struct {
	kind    schema.GroupVersionKind
	storage rest.Storage
	// handlers are made anew for each request: upstream's wrap the admission that
	// they are given each time they are called.
	handlers map[string]func() http.HandlerFunc
}

// newEndpoint makes an endpoint. Who wrote which field is recorded only if keepsFields.
func newEndpoint(at place, kind schema.GroupVersionKind, storage rest.Storage, keepsFields bool) *endpoint {
	scope := newScope(at, kind, storage)
	creating := *scope
	if keepsFields {
		scope.FieldManager = fieldManager(kind, at.subresource, storage)
		creating.FieldManager = scope.FieldManager
	} else {
		creating.Creater = neverNew{}
	}
	e := &endpoint{kind: kind, storage: storage, handlers: map[string]func() http.HandlerFunc{}}
	e.read(scope)
	e.create(&creating)
	e.write(scope)
	e.delete(scope)
	return e
}

func (e *endpoint) read(scope *handlers.RequestScope) {
	if r, ok := e.storage.(rest.Getter); ok {
		e.handlers["get"] = func() http.HandlerFunc { return handlers.GetResource(r, scope) }
	}
	if r, ok := e.storage.(rest.Lister); ok {
		watcher := e.storage.(rest.Watcher)
		list := func() http.HandlerFunc { return handlers.ListResource(r, watcher, scope, false, shortestWatch) }
		e.handlers["list"], e.handlers["watch"] = list, list
	}
}

func (e *endpoint) create(scope *handlers.RequestScope) {
	switch r := e.storage.(type) {
	case rest.NamedCreater:
		e.handlers["create"] = func() http.HandlerFunc { return handlers.CreateNamedResource(r, scope, admitter{}) }
	case rest.Creater:
		e.handlers["create"] = func() http.HandlerFunc { return handlers.CreateResource(r, scope, admitter{}) }
	}
}

func (e *endpoint) write(scope *handlers.RequestScope) {
	if r, ok := e.storage.(rest.Updater); ok {
		e.handlers["update"] = func() http.HandlerFunc { return handlers.UpdateResource(r, scope, admitter{}) }
	}
	if r, ok := e.storage.(rest.Patcher); ok {
		e.handlers["patch"] = func() http.HandlerFunc { return handlers.PatchResource(r, scope, admitter{}, patchKinds) }
	}
}

func (e *endpoint) delete(scope *handlers.RequestScope) {
	if r, ok := e.storage.(rest.GracefulDeleter); ok {
		e.handlers["delete"] = func() http.HandlerFunc { return handlers.DeleteResource(r, true, scope, admitter{}) }
	}
	if r, ok := e.storage.(rest.CollectionDeleter); ok {
		e.handlers["deletecollection"] = func() http.HandlerFunc { return handlers.DeleteCollection(r, true, scope, admitter{}) }
	}
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

package apiserver

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Options say what a Server does beside serving.
type Options struct {
	// Observe, if set, is told each committed write, in order, under the
	// server's lock: it must not call the server.
	Observe func(Write)
}

// Write is one committed change of the storage.
type Write struct {
	Time            time.Time
	ResourceVersion uint64
	// By is who wrote: the name given to Transport.
	By string
	// Verb is create, update, patch, delete or deletecollection; "collect" for
	// the garbage collector.
	Verb        string
	Resource    string // pods, jobs, cronjobs, events, leases, namespaces, resourcequotas, …
	Subresource string // "", status, …
	Key         types.NamespacedName
	UID         types.UID
	// Old and New are typed (*corev1.Pod, *batchv1.Job, …) and must not be
	// changed. Old is nil if the object was created, New if it is gone from the
	// storage.
	Old, New runtime.Object
}

// Server is an API server in memory: storage, watch cache and the wire.
type Server struct {
	observe func(Write)

	mu sync.Mutex
}

// New returns a server that holds the namespaces default, kube-system,
// kube-public and kube-node-lease, and nothing else.
func New(options Options) *Server {
	return &Server{observe: options.Observe}
}

// Transport speaks the real wire to whoever is named by: JSON and Kubernetes
// protobuf, lists, watches, bookmarks.
func (s *Server) Transport(by string) http.RoundTripper { panic("not implemented") }

// Get returns a copy of a stored object.
func (s *Server) Get(resource string, key types.NamespacedName) (runtime.Object, bool) {
	panic("not implemented")
}

// List returns copies of the objects of a namespace, or of all if it is empty,
// in the order of their keys.
func (s *Server) List(resource, namespace string) []runtime.Object { panic("not implemented") }

// Update runs change on a copy of the stored object and commits the result as a
// write of by, through the rules of the resource or subresource. It reports
// false if the object is gone.
func (s *Server) Update(by, resource, subresource string, key types.NamespacedName, change func(runtime.Object)) bool {
	panic("not implemented")
}

// CollectGarbage deletes what has no living owner, advances foreground
// deletions and empties namespaces that are being deleted. It reports whether
// it did something.
func (s *Server) CollectGarbage() bool { panic("not implemented") }

// Compact makes watches and lists from before the version answer 410.
func (s *Server) Compact(resourceVersion uint64) { panic("not implemented") }

// BreakWatches ends the watches of by.
func (s *Server) BreakWatches(by string) { panic("not implemented") }

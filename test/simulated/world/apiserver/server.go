package apiserver

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Options say what a Server does beside serving.
type Options struct {
	// Observe, if set, is called for each committed write, in order, under the
	// server's lock: it must not call the server.
	Observe func(Write)
	// FieldManager, if set, names the client behind a name given to Transport: the server
	// records who wrote which field (metadata.managedFields).
	FieldManager func(by string) string
}

// Write is one committed change of the storage.
type Write struct {
	Time            time.Time
	ResourceVersion uint64
	// By is the writer: the name given to Transport.
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
	observe      func(Write)
	fieldManager func(by string) string // nil: managed fields are not recorded.

	mu        sync.Mutex
	version   uint64 // of the last write
	compacted uint64 // versions before this one are gone
	tables    map[string]*table
	ordinals  map[string]uint64 // how many UIDs or names were drawn from each root
	streams   []*stream         // In the order in which they began.
	reminded  time.Time         // When bookmarks were last sent.
	marks     []mark            // The version in each minute in which something was written.
}

// firstVersion is the resource version of an empty server. It is not 0, which
// has a meaning of its own in requests.
const firstVersion = 1

// New returns a server that holds the namespaces that every cluster has, and
// nothing else.
func New(options Options) *Server {
	s := &Server{
		version:  firstVersion,
		tables:   map[string]*table{},
		ordinals: map[string]uint64{},
		reminded: time.Now(),
	}
	for _, r := range registries().stores {
		s.tables[r.resource] = newTable(r)
	}
	s.createSystemNamespaces()
	s.observe, s.fieldManager = options.Observe, options.FieldManager
	return s
}

// A caller is what the storage knows about the request that it serves.
type caller struct {
	server      *Server
	by          string
	verb        string
	subresource string
}

type callerKey struct{}

func withCaller(ctx context.Context, c *caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerFrom returns the caller of a request. Registries pass the request's context to the
// storage, so it is always there.
func callerFrom(ctx context.Context) *caller { return ctx.Value(callerKey{}).(*caller) }

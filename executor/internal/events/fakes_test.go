package events

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// server keeps events as an API server does.
type server struct {
	// latency is how long an answer takes.
	latency time.Duration
	// before is asked before a write takes effect; after, once it has. An error is
	// the answer.
	before, after func(*corev1.Event) error

	mu     sync.Mutex
	stored map[string]*corev1.Event // by namespace and name
	order  []*corev1.Event
}

func newServer() *server {
	return &server{latency: 5 * time.Millisecond, stored: map[string]*corev1.Event{}}
}

func (s *server) Events(namespace string) typedcorev1.EventInterface {
	return &namespaced{server: s, namespace: namespace}
}

type namespaced struct {
	typedcorev1.EventInterface
	*server
	namespace string
}

func (n *namespaced) Create(ctx context.Context, ev *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	return n.write(ctx, ev, func() (*corev1.Event, error) {
		if n.stored[n.namespace+"/"+ev.Name] != nil {
			return nil, apierrors.NewAlreadyExists(corev1.Resource("events"), ev.Name)
		}
		return ev.DeepCopy(), nil
	})
}

func (n *namespaced) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Event, error) {
	key := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}}
	return n.write(ctx, key, func() (*corev1.Event, error) {
		old := n.stored[n.namespace+"/"+name]
		if old == nil {
			return nil, apierrors.NewNotFound(corev1.Resource("events"), name)
		}
		was, err := json.Marshal(old)
		if err != nil {
			return nil, err
		}
		is, err := strategicpatch.StrategicMergePatch(was, patch, corev1.Event{})
		if err != nil {
			return nil, err
		}
		patched := &corev1.Event{}
		return patched, json.Unmarshal(is, patched)
	})
}

func (s *server) write(ctx context.Context, ev *corev1.Event, change func() (*corev1.Event, error)) (*corev1.Event, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(s.latency):
	}
	if s.before != nil {
		if err := s.before(ev); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := change()
	if err != nil {
		return nil, err
	}
	s.stored[stored.Namespace+"/"+stored.Name] = stored
	s.order = append(s.order, stored)
	if s.after != nil {
		if err := s.after(stored); err != nil {
			return nil, err
		}
	}
	return stored.DeepCopy(), nil
}

// said is what was written about each object, in order.
func (s *server) said() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := map[string][]string{}
	for _, ev := range s.order {
		said[ev.InvolvedObject.Name] = append(said[ev.InvolvedObject.Name], ev.Reason)
	}
	return said
}

// count is how many writes there were in a namespace.
func (s *server) count(namespace string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ev := range s.order {
		if ev.Namespace == namespace {
			n++
		}
	}
	return n
}

func (s *server) wantSaid(t *testing.T, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(want, s.said()); diff != "" {
		t.Errorf("events by object (-want +got):\n%s", diff)
	}
}

func unavailable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}}
}

var errBroken = errors.New("connection broken")

func job(namespace, name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}}
}

// start runs a Broadcaster for the length of the test.
func start(t *testing.T, s *server) *Broadcaster {
	t.Helper()
	b, err := New(Config{Client: s, Component: "tester", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.Start(t.Context())
	t.Cleanup(b.Shutdown)
	return b
}

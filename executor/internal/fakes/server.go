package fakes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// UID returns a UID for each number.
func UID(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)) }

// Server is a clientset that gives out UIDs, names and resource versions as an API
// server does, and records the writes that it is asked for. A write is named by verb
// and resource, as in "update jobs/status". Writes of events do not count.
type Server struct {
	*fake.Clientset
	// Failures are functions by the name of a write. Each is called before such a write takes
	// effect; n counts the tries. If it returns an error, that is the answer.
	Failures map[string]func(n int) error

	one     sync.Mutex // Held by a write: one takes effect after the other.
	mu      sync.Mutex
	version int
	names   []string
	writes  []clienttesting.Action
	tries   map[string]int
}

// NewServer returns a Server that has the objects.
func NewServer(objects ...runtime.Object) *Server {
	s := &Server{Clientset: fake.NewClientset(), version: 100, Failures: map[string]func(int) error{}, tries: map[string]int{}}
	for _, o := range objects {
		s.Stamp(o)
		must(s.Tracker().Add(o))
	}
	s.PrependReactor("*", "*", s.react)
	return s
}

// FailFirst fails the first tries with the error.
func FailFirst(tries int, err error) func(int) error {
	return func(n int) error {
		if n <= tries {
			return err
		}
		return nil
	}
}

// Stamp gives an object the next resource version, and a UID, a name and a creation time if
// it has none.
func (s *Server) Stamp(o runtime.Object) {
	m, err := meta.Accessor(o)
	must(err)
	s.mu.Lock()
	s.version++
	version := s.version
	s.mu.Unlock()
	m.SetResourceVersion(strconv.Itoa(version))
	if m.GetUID() == "" {
		m.SetUID(UID(0x1000 + version))
	}
	if m.GetName() == "" {
		m.SetName(m.GetGenerateName() + strconv.Itoa(version))
	}
	if m.GetCreationTimestamp().Time.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
}

// Lock keeps other writes out until Unlock, so that a test can make several changes at
// once.
func (s *Server) Lock() { s.one.Lock() }

// Unlock ends what Lock began.
func (s *Server) Unlock() { s.one.Unlock() }

// Done returns the names of the writes so far, in order.
func (s *Server) Done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

// WantWrites compares the names of the writes so far.
func (s *Server) WantWrites(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.Done()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// Events are the reasons of all events, in no order.
func (s *Server) Events(t testing.TB) (reasons []string) {
	t.Helper()
	for _, event := range s.events(t) {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

func (s *Server) events(t testing.TB) []corev1.Event {
	t.Helper()
	list, err := s.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// AwaitEvent waits for an event of the reason, and returns it.
func (s *Server) AwaitEvent(t testing.TB, reason string) (event corev1.Event) {
	t.Helper()
	Eventually(t, "event "+reason, func() bool {
		all := s.events(t)
		i := slices.IndexFunc(all, func(ev corev1.Event) bool { return ev.Reason == reason })
		if i >= 0 {
			event = all[i]
		}
		return i >= 0
	})
	return event
}

// Count counts calls of a verb on a resource of a namespace from now on. Those of informers of
// all namespaces do not count.
func (s *Server) Count(verb, resource string) (calls func() int) {
	var n atomic.Int32
	s.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != metav1.NamespaceAll {
			n.Add(1)
		}
		return false, nil, nil
	})
	return func() int { return int(n.Load()) }
}

// Writes returns the writes so far, in order.
func (s *Server) Writes() []clienttesting.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Tries returns how often a write was tried.
func (s *Server) Tries(write string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries[write]
}

func (s *Server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if verb := action.GetVerb(); action.GetResource().Resource == "events" || verb == "get" || verb == "list" || verb == "watch" {
		return false, nil, nil
	}
	s.Lock()
	defer s.Unlock()
	if err := s.try(action); err != nil {
		return true, nil, err
	}
	switch a := action.(type) {
	case clienttesting.CreateAction: // Updates are of this type, too.
		s.Stamp(a.GetObject())
	case clienttesting.PatchActionImpl:
		return s.patch(a)
	case clienttesting.DeleteActionImpl:
		if err := s.refusedAsChanged(a); err != nil {
			return true, nil, err
		}
	}
	return false, nil, nil
}

// refusedAsChanged is the answer to a deletion that names a resource version, if the object
// has another one.
func (s *Server) refusedAsChanged(a clienttesting.DeleteActionImpl) error {
	if p := a.DeleteOptions.Preconditions; p == nil || p.ResourceVersion == nil {
		return nil
	}
	current, err := s.Tracker().Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return err
	}
	m, err := meta.Accessor(current)
	must(err)
	if *a.DeleteOptions.Preconditions.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("newer"))
	}
	return nil
}

// try records a write, and returns how it fails.
func (s *Server) try(action clienttesting.Action) error {
	write := action.GetVerb() + " " + action.GetResource().Resource
	if sub := action.GetSubresource(); sub != "" {
		write += "/" + sub
	}
	s.mu.Lock()
	s.names = append(s.names, write)
	s.writes = append(s.writes, action)
	s.tries[write]++
	n, fail := s.tries[write], s.Failures[write]
	s.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(n)
}

// patch lets the clientset apply the patch, and then gives the object a version. A patch
// that names a resource version is refused if the object has another one.
func (s *Server) patch(a clienttesting.PatchActionImpl) (bool, runtime.Object, error) {
	var named struct {
		Metadata struct{ ResourceVersion string }
	}
	if a.GetPatchType() != types.JSONPatchType {
		must(json.Unmarshal(a.GetPatch(), &named))
	}
	current, err := s.Tracker().Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return true, nil, err
	}
	m, err := meta.Accessor(current)
	must(err)
	if v := named.Metadata.ResourceVersion; v != "" && v != m.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(a.GetResource().GroupResource(), a.GetName(), errors.New("newer"))
	}
	handled, obj, err := clienttesting.ObjectReaction(s.Tracker())(a)
	if err != nil || !handled {
		return handled, obj, err
	}
	s.Stamp(obj)
	return true, obj, s.Tracker().Update(a.GetResource(), obj, a.GetNamespace())
}

// must panics on an error that only a defect of the test can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

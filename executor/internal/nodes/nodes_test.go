package nodes

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	unknown  = jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED
	ready    = jobpolicyv1.NodeState_NODE_STATE_READY
	notReady = jobpolicyv1.NodeState_NODE_STATE_NOT_READY
	gone     = jobpolicyv1.NodeState_NODE_STATE_GONE
)

// A scene is Nodes over a fake API server.
type scene struct {
	t      *testing.T
	nodes  *Nodes
	client *fake.Clientset
	log    strings.Builder

	mu   sync.Mutex
	told []string
	// refused is the answer to lists and watches; nil: they succeed.
	refused error
}

// newScene runs inside of a bubble.
func newScene(t *testing.T, objects ...runtime.Object) *scene {
	t.Helper()
	s := &scene{t: t, client: fake.NewClientset(objects...)}
	refuse := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused
	}
	s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := refuse()
		return err != nil, nil, err
	})
	s.nodes = New(s.client, slog.New(slog.NewTextHandler(&s.log, nil)), func(name string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, name)
	})
	go s.nodes.Run(t.Context())
	return s
}

func (s *scene) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// want compares the state of node a, and of which nodes a change was told since the last call.
func (s *scene) want(state jobpolicyv1.NodeState, told ...string) {
	s.t.Helper()
	time.Sleep(2 * time.Minute) // For another attempt.
	synctest.Wait()
	if got := s.nodes.State("a"); got != state {
		s.t.Errorf("state %s, want %s", got, state)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(told, slices.Compact(s.told)); diff != "" {
		s.t.Errorf("told (-want +got):\n%s", diff)
	}
	s.told = nil
}

func node(status corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}
	if status != "" {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status})
	}
	return n
}

func (s *scene) update(n *corev1.Node) {
	s.t.Helper()
	if _, err := s.client.CoreV1().Nodes().Update(s.t.Context(), n, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// Nothing is read before it is asked for. Then each change of the condition Ready is told, and no other one.
func TestStatesOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, node(corev1.ConditionTrue))
		s.want(unknown)
		if actions := s.client.Actions(); len(actions) > 0 {
			t.Errorf("reads before it is asked to: %v", actions)
		}
		s.nodes.Watch()
		s.want(ready, "")
		labelled := node(corev1.ConditionTrue)
		labelled.Labels = map[string]string{"zone": "b"}
		s.update(labelled)
		s.want(ready)
		s.update(node(corev1.ConditionUnknown))
		s.want(notReady, "a")
		s.update(node(corev1.ConditionTrue))
		s.want(ready, "a")
		s.update(node(corev1.ConditionFalse))
		s.want(notReady, "a")
		s.update(node(""))
		s.want(notReady)
		if err := s.client.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.want(gone, "a")
		if _, err := s.client.CoreV1().Nodes().Create(t.Context(), node(corev1.ConditionTrue), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.want(ready, "a")
	})
}

// Without the right to read nodes nothing is known of them, which is said once. The right may be granted later.
func TestNodesThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, node(corev1.ConditionUnknown))
		s.refuse(apierrors.NewForbidden(corev1.Resource("nodes"), "", nil))
		s.nodes.Watch()
		s.want(unknown)
		s.refuse(nil)
		s.want(notReady, "")
		if n := strings.Count(s.log.String(), "level=WARN"); n != 1 || !strings.Contains(s.log.String(), "no right to read nodes") {
			t.Errorf("want one warning about the right, have the log\n%s", &s.log)
		}
	})
}

// An API server that does not answer says nothing about nodes.
func TestNodesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.refuse(apierrors.NewServiceUnavailable("starting"))
		s.nodes.Watch()
		s.want(unknown)
		s.refuse(nil)
		s.want(gone, "")
		if strings.Contains(s.log.String(), "right") {
			t.Errorf("it complains about a missing right:\n%s", &s.log)
		}
	})
}

// If the right is taken away, what was read is worth nothing from when the watch ends.
func TestTheRightToReadNodesIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, node(corev1.ConditionUnknown))
		watched := make(chan watch.Interface, 10)
		s.client.PrependWatchReactor("nodes", func(action clienttesting.Action) (bool, watch.Interface, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.refused != nil {
				return true, nil, s.refused
			}
			w, err := s.client.Tracker().Watch(action.GetResource(), "")
			watched <- w
			return true, w, err
		})
		s.nodes.Watch()
		s.want(notReady, "")
		s.refuse(apierrors.NewForbidden(corev1.Resource("nodes"), "", nil))
		(<-watched).Stop()
		s.want(unknown, "")
		s.refuse(nil)
		s.want(notReady, "")
	})
}

// A streams client lists by watches, as a real one does: a fake one says that it does not.
type streams struct{ kubernetes.Interface }

// What was known before a watch failed counts no more when the next one begins, but only once that has sent all nodes.
func TestNodesAreKnownOnceAllWereSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, watched := fake.NewClientset(), make(chan *watch.FakeWatcher, 10)
		forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
		var refused atomic.Bool
		client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		client.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
			if refused.Load() {
				return true, nil, forbidden
			}
			w := watch.NewFake()
			watched <- w
			return true, w, nil
		})
		nodes := New(streams{client}, slog.New(slog.DiscardHandler), func(string) {})
		go nodes.Run(t.Context())
		nodes.Watch()
		want := func(state jobpolicyv1.NodeState) {
			t.Helper()
			time.Sleep(2 * time.Minute) // For another attempt.
			synctest.Wait()
			if got := nodes.State("a"); got != state {
				t.Errorf("state %s, want %s", got, state)
			}
		}
		sent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		w := <-watched
		w.Add(node(corev1.ConditionUnknown))
		want(unknown)
		w.Action(watch.Bookmark, sent)
		want(notReady)
		refused.Store(true)
		w.Stop()
		want(unknown)
		refused.Store(false)
		w = <-watched
		want(unknown)
		w.Add(node(corev1.ConditionTrue))
		w.Action(watch.Bookmark, sent)
		want(ready)
	})
}

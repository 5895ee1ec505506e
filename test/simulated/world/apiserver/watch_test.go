package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// A follower is an informer of pods, with the events that it has received.
type follower struct {
	informer cache.SharedIndexInformer
	stop     chan struct{}
	events   []string // Read and written only when the bubble is at rest, or by the informer.
}

func follow(t *testing.T, s *Server, protobuf bool) *follower {
	t.Helper()
	factory := informers.NewSharedInformerFactory(clientOf(s, "follower", protobuf), 0)
	f := &follower{informer: factory.Core().V1().Pods().Informer(), stop: make(chan struct{})}
	_, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.events = append(f.events, "added "+obj.(*corev1.Pod).Name) },
		UpdateFunc: func(_, obj any) { f.events = append(f.events, "updated "+obj.(*corev1.Pod).Name) },
		DeleteFunc: func(obj any) {
			key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			f.events = append(f.events, "deleted "+key)
		},
	})
	must.Succeed(t, err)
	factory.Start(f.stop)
	t.Cleanup(factory.Shutdown)
	return f
}

// versions returns the resource version of each pod in the informer's store.
func (f *follower) versions() map[string]string {
	known := map[string]string{}
	for _, obj := range f.informer.GetStore().List() {
		pod := obj.(*corev1.Pod)
		known[pod.Name] = pod.ResourceVersion
	}
	return known
}

func podVersions(s *Server) map[string]string {
	known := map[string]string{}
	for _, obj := range s.List("pods", "") {
		pod := obj.(*corev1.Pod)
		known[pod.Name] = pod.ResourceVersion
	}
	return known
}

func (f *follower) check(t *testing.T, s *Server) {
	t.Helper()
	synctest.Wait()
	if got, want := f.versions(), podVersions(s); !maps.Equal(got, want) {
		t.Errorf("the informer knows %v, the server %v", got, want)
	}
}

func TestInformerFollows(t *testing.T) {
	for name, protobuf := range map[string]bool{"json": false, "protobuf": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Options{})
				client := clientOf(s, "user", protobuf)
				pods := client.CoreV1().Pods("default")
				create(t, client, "before")
				f := follow(t, s, protobuf)
				f.check(t, s)
				create(t, client, "after")
				f.check(t, s)
				s.Update("kubelet", "pods", "status", key("after"), func(obj runtime.Object) {
					obj.(*corev1.Pod).Status.Phase = corev1.PodRunning
				})
				f.check(t, s)

				s.BreakWatches("follower")
				create(t, client, "while broken")
				time.Sleep(time.Minute)
				f.check(t, s)

				s.BreakWatches("follower")
				must.Succeed(t, pods.Delete(t.Context(), "before", metav1.DeleteOptions{}))
				s.Compact(s.version)
				time.Sleep(time.Minute)
				f.check(t, s)
				close(f.stop)
				if !slices.Contains(f.events, "deleted default/before") || !slices.Contains(f.events, "updated after") {
					t.Errorf("%q", f.events)
				}
			})
		})
	}
}

func create(t *testing.T, client kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	for i, r := range name {
		if r == ' ' {
			name = name[:i] + "-" + name[i+1:]
		}
	}
	pod := objects.Create(t, client.CoreV1().Pods("default"), newPod(name))
	return pod
}

// watchPods returns the events of a watch until the server sends no more.
func watchPods(t *testing.T, client kubernetes.Interface, options metav1.ListOptions) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	options.TimeoutSeconds = new(int64(60))
	w, err := client.CoreV1().Pods("").Watch(ctx, options)
	must.Succeed(t, err)
	var told []string
	for e := range w.ResultChan() {
		told = append(told, describe(e))
	}
	return told
}

func describe(e watch.Event) string {
	switch obj := e.Object.(type) {
	case *corev1.Pod:
		return fmt.Sprintf("%s %s %v", e.Type, obj.Name, obj.Annotations)
	case *metav1.Status:
		return fmt.Sprintf("%s %d %s", e.Type, obj.Code, obj.Reason)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

func TestWatchBegins(t *testing.T) {
	cases := map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"without a version, with what is there": {
			metav1.ListOptions{}, []string{"ADDED a map[]", "ADDED b map[]"},
		},
		"as a watch-list, whose end is marked": {
			metav1.ListOptions{
				SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			},
			[]string{"ADDED a map[]", "ADDED b map[]", "BOOKMARK  map[k8s.io/initial-events-end:true]"},
		},
		"from a version that is known": {
			metav1.ListOptions{ResourceVersion: "7"}, []string{"MODIFIED gone map[]", "DELETED gone map[]", "ADDED b map[]"},
		},
		"from a version that is not": {metav1.ListOptions{ResourceVersion: "2"}, []string{"ERROR 410 Expired"}},
		"from the future":            {metav1.ListOptions{ResourceVersion: "99"}, nil},
		"with a selector": {
			metav1.ListOptions{FieldSelector: "metadata.name=b"}, []string{"ADDED b map[]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
				create(t, client, "a") // Version 6: the namespaces were first.
				create(t, client, "gone")
				must.Succeed(t, client.CoreV1().Pods("default").Delete(t.Context(), "gone", metav1.DeleteOptions{}))
				s.Compact(6)
				create(t, client, "b")
				if got := watchPods(t, client, tc.options); !slices.Equal(got, tc.want) {
					t.Errorf("told %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestWatchSaysWhatNoLongerMatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		create(t, client, "a")
		w, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{
			FieldSelector: "status.phase=Pending", ResourceVersion: fmt.Sprint(s.version), TimeoutSeconds: new(int64(60)),
		})
		must.Succeed(t, err)
		defer w.Stop()
		s.Update("kubelet", "pods", "status", key("a"), func(obj runtime.Object) { obj.(*corev1.Pod).Status.Phase = corev1.PodRunning })
		pod, _ := s.Get("pods", key("a"))
		e := <-w.ResultChan()
		told := e.Object.(*corev1.Pod)
		if e.Type != watch.Deleted || told.ResourceVersion != pod.(*corev1.Pod).ResourceVersion || told.Status.Phase != corev1.PodPending {
			t.Errorf("%s %+v", e.Type, told)
		}
	})
}

func TestBookmarksGoOutWithWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		w, err := client.BatchV1().Jobs("").Watch(t.Context(), metav1.ListOptions{
			AllowWatchBookmarks: true, ResourceVersion: fmt.Sprint(s.version), TimeoutSeconds: new(int64(600)),
		})
		must.Succeed(t, err)
		defer w.Stop()
		time.Sleep(2 * bookmarkEvery)
		create(t, client, "another-resource")
		if e := <-w.ResultChan(); e.Type != watch.Bookmark {
			t.Errorf("%+v", e)
		}
	})
}

func TestListOfThePast(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		create(t, client, "a")
		then := s.version
		create(t, client, "b")
		s.Update("kubelet", "pods", "status", key("a"), func(obj runtime.Object) { obj.(*corev1.Pod).Status.Phase = corev1.PodRunning })
		options := metav1.ListOptions{ResourceVersion: fmt.Sprint(then), ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		list := objects.List(t, client.CoreV1().Pods(""), options)
		if len(list.Items) != 1 || list.Items[0].Status.Phase != corev1.PodPending || list.ResourceVersion != fmt.Sprint(then) {
			t.Errorf("%+v", list)
		}
		s.Compact(s.version)
		if _, err := client.CoreV1().Pods("").List(t.Context(), options); !errors.IsResourceExpired(err) {
			t.Errorf("a list of a version that is forgotten: %v", err)
		}
	})
}

func TestOldVersionsAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		create(t, client, "a")
		long, recent := s.version, uint64(0)
		for i := range 30 {
			time.Sleep(time.Minute)
			if i == 27 {
				recent = s.version
			}
			create(t, client, fmt.Sprint("b", i))
		}
		at := func(version uint64) error {
			_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{
				ResourceVersion: fmt.Sprint(version), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			})
			return err
		}
		if err := at(long); !errors.IsResourceExpired(err) {
			t.Errorf("a list of half an hour ago: %v", err)
		}
		if err := at(recent); err != nil {
			t.Errorf("a list of three minutes ago: %v", err)
		}
	})
}

func TestListInPages(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, client kubernetes.Interface) {
		for _, name := range []string{"a", "b", "c"} {
			create(t, client, name)
		}
		pods := client.CoreV1().Pods("default")
		first := objects.List(t, pods, metav1.ListOptions{Limit: 2})
		create(t, client, "d") // Later than the list.
		second := objects.List(t, pods, metav1.ListOptions{Limit: 2, Continue: first.Continue})
		if len(first.Items) != 2 || *first.RemainingItemCount != 1 || len(second.Items) != 1 || second.Items[0].Name != "c" {
			t.Errorf("pages of %d and %d", len(first.Items), len(second.Items))
		}
		s.Compact(s.version)
		if _, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue}); !errors.IsResourceExpired(err) {
			t.Errorf("a page of a list that is forgotten: %v", err)
		}
	})
}

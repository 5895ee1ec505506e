package history

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Resources are those that every recording has.
var Resources = []schema.GroupVersionResource{
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "events"},
}

// A life is every version of one object.
type life struct {
	versions []*unstructured.Unstructured
	// seen has the time at which each version came.
	seen []time.Time
	gone bool
}

// A Recorder holds every version of the objects of a namespace, in the order in which they appeared.
type Recorder struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	begin time.Time

	mu     sync.Mutex
	lives  map[types.UID]*life
	order  []*life
	latest time.Time
}

// Record watches Resources and further ones in a namespace until Stop is called.
func Record(ctx context.Context, client dynamic.Interface, namespace string, further ...schema.GroupVersionResource) (*Recorder, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recorder{stop: stop, begin: time.Now(), lives: map[types.UID]*life{}, latest: time.Now()}
	for _, resource := range append(Resources[:len(Resources):len(Resources)], further...) {
		if err := r.watch(ctx, client.Resource(resource).Namespace(namespace)); err != nil {
			r.Stop()
			return nil, fmt.Errorf("record %s: %w", resource.Resource, err)
		}
	}
	return r, nil
}

// watch follows one resource. The list only says where the watch begins: the namespace is new.
func (r *Recorder) watch(ctx context.Context, client dynamic.ResourceInterface) error {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: client.Watch})
	if err != nil {
		return err
	}
	r.done.Go(func() {
		for event := range watcher.ResultChan() {
			r.see(event)
		}
	})
	return nil
}

func (r *Recorder) see(event watch.Event) {
	o, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lives[o.GetUID()]
	if l == nil {
		l = &life{}
		r.lives[o.GetUID()] = l
		r.order = append(r.order, l)
	}
	r.latest = time.Now()
	l.versions, l.seen = append(l.versions, o), append(l.seen, r.latest)
	l.gone = l.gone || event.Type == watch.Deleted
}

// Settle waits until nothing has changed for a while, but not longer than limit.
func (r *Recorder) Settle(ctx context.Context, quiet, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		left := quiet - time.Since(r.latest)
		r.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// Stop ends the recording.
func (r *Recorder) Stop() {
	r.stop()
	r.done.Wait()
}

package bench

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A seer receives every version of every object that a watch delivers. It stores
// nothing, so that each user stores only what it needs.
type seer[T any] func(obj T, gone bool)

func (s seer[T]) pass(obj any, gone bool) error {
	if o, ok := obj.(T); ok {
		s(o, gone)
	}
	return nil
}

// Add implements cache.ReflectorStore, as the other methods do.
func (s seer[T]) Add(obj any) error    { return s.pass(obj, false) }
func (s seer[T]) Update(obj any) error { return s.pass(obj, false) }
func (s seer[T]) Delete(obj any) error { return s.pass(obj, true) }
func (s seer[T]) Resync() error        { return nil }

// Replace passes on the objects of a list, at the start and after a watch broke off.
func (s seer[T]) Replace(list []any, _ string) error {
	for _, obj := range list {
		if err := s.pass(obj, false); err != nil {
			return err
		}
	}
	return nil
}

// resource lists and watches one kind of object in all namespaces.
type resource[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// follow tells store of every change of an object of a kind, from one goroutine, until
// ctx ends. example is an empty object of the kind.
func follow[L runtime.Object](ctx context.Context, client kubernetes.Interface, r resource[L], example runtime.Object, store cache.ReflectorStore) {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return r.List(ctx, opts)
		},
		WatchFuncWithContext: r.Watch,
	}, client)
	cache.NewReflectorWithOptions(source, example, store, cache.ReflectorOptions{}).RunWithContext(ctx)
}

package podjob

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// Run calls reconcile whenever an object of one of the resources or a pod has changed,
// and at the time that the last call returned, until ctx is done. It is for small
// controllers, which look at everything each time. reconcile never runs twice at once. Its
// errors are logged, and it is called again after a second. Run returns the error of ctx, or
// that of an event handler that cannot be added.
func Run(ctx context.Context, client dynamic.Interface, reconcile func(context.Context) (next time.Time, err error), resources ...schema.GroupVersionResource) error {
	changes := make(chan struct{}, 1)
	changed := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, resource := range append(resources, corev1.SchemeGroupVersion.WithResource("pods")) {
		_, err := informers.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
		})
		if err != nil {
			return err
		}
	}
	informers.Start(ctx.Done())
	for ctx.Err() == nil {
		next, err := reconcile(ctx)
		if err != nil {
			slog.Error("reconcile", slog.Any("error", err), slog.Duration("retryAfter", retryAfter))
			next = time.Now().Add(retryAfter)
		}
		var due <-chan time.Time // Never, if next is zero.
		if !next.IsZero() {
			due = time.After(time.Until(next))
		}
		select {
		case <-changes:
		case <-due:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// Owned are pods by the object that controls them.
type Owned map[tracker.Key][]corev1.Pod

// ByOwner sorts pods by the object that controls them, and leaves out those that no object
// of the kind controls.
func ByOwner(pods []corev1.Pod, kind schema.GroupVersionKind) Owned {
	owned := Owned{}
	for _, pod := range pods {
		if ref := wire.ControllerOf(&pod, kind.GroupKind()); ref != nil {
			key := tracker.Key{Namespace: pod.Namespace, UID: ref.UID}
			owned[key] = append(owned[key], pod)
		}
	}
	return owned
}

// Take returns the pods of an object, and removes them from Owned. What is left in the end belongs
// to objects that are gone.
func (o Owned) Take(object metav1.Object) []corev1.Pod {
	key := tracker.Key{Namespace: object.GetNamespace(), UID: object.GetUID()}
	defer delete(o, key)
	return o[key]
}

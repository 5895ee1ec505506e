package hostnode

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

const (
	// statusWriters bounds how many pods are written at the same time.
	statusWriters = 8
	// statusRetryBase and statusRetryMax bound the delay before a failed write is tried again.
	statusRetryBase = 50 * time.Millisecond
	statusRetryMax  = 10 * time.Second
)

// podUpdate is what the API is to hold about a pod.
type podUpdate struct {
	namespace, name string
	uid             types.UID
	// status is never changed once it is passed on: the same pointer is the same status.
	status *corev1.PodStatus
	// remove asks for the object's final deletion after the status is written.
	remove bool
}

// statusWriter brings wanted statuses to the API. Only the latest of a pod is written; what could not be written is
// tried again until it is, or the pod is forgotten.
type statusWriter struct {
	client kubernetes.Interface
	queue  workqueue.TypedRateLimitingInterface[types.UID]
	logger *slog.Logger

	mu      sync.Mutex
	wanted  map[types.UID]podUpdate
	written map[types.UID]*corev1.PodStatus
}

func newStatusWriter(client kubernetes.Interface, logger *slog.Logger) *statusWriter {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](statusRetryBase, statusRetryMax)
	return &statusWriter{
		client:  client,
		queue:   workqueue.NewTypedRateLimitingQueue(limiter),
		logger:  logger,
		wanted:  make(map[types.UID]podUpdate),
		written: make(map[types.UID]*corev1.PodStatus),
	}
}

func (w *statusWriter) put(u podUpdate) {
	w.mu.Lock()
	w.wanted[u.uid] = u
	w.mu.Unlock()
	w.queue.Add(u.uid)
}

func (w *statusWriter) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wanted, uid)
	delete(w.written, uid)
}

// run writes until ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	var writers sync.WaitGroup
	for range statusWriters {
		writers.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	writers.Wait()
}

func (w *statusWriter) next(ctx context.Context) bool {
	uid, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(uid)
	err := w.sync(ctx, uid)
	if err == nil || ctx.Err() != nil {
		w.queue.Forget(uid)
		return true
	}
	w.logger.Warn("pod status was not written", "uid", uid, "error", err)
	w.queue.AddRateLimited(uid)
	return true
}

// sync writes what is wanted of one pod. A nil error means that there is nothing left to do, or that trying again is
// pointless.
func (w *statusWriter) sync(ctx context.Context, uid types.UID) error {
	w.mu.Lock()
	u, known := w.wanted[uid]
	last := w.written[uid]
	w.mu.Unlock()
	if !known {
		return nil
	}
	if u.status != last {
		if err := w.patch(ctx, u); err != nil {
			return w.unlessPointless(u, err)
		}
	}
	if !u.remove {
		return nil
	}
	return w.unlessPointless(u, w.remove(ctx, u))
}

// patch is safe against a newer pod of the same name: the patch carries the uid.
func (w *statusWriter) patch(ctx context.Context, u podUpdate) error {
	body, err := statusPatch(u.uid, u.status)
	if err != nil {
		return err
	}
	_, err = w.client.CoreV1().Pods(u.namespace).Patch(ctx, u.name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.wanted[u.uid]; known {
		w.written[u.uid] = u.status
	}
	return nil
}

// remove lets the API server drop the object. With finalizers it stays, marked with a grace period of 0.
func (w *statusWriter) remove(ctx context.Context, u podUpdate) error {
	return w.client.CoreV1().Pods(u.namespace).Delete(ctx, u.name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(u.uid)),
	})
}

// unlessPointless drops errors that the same write would meet again: the object is gone, or its status is refused.
func (w *statusWriter) unlessPointless(u podUpdate, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsInvalid(err) {
		w.logger.Error("pod status was refused", "namespace", u.namespace, "pod", u.name, "error", err)
		return nil
	}
	return err
}

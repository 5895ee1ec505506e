package events

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record/util"
)

// poster sends the oldest event of one object after the other. The queue gives no
// object to two posters, so its events stay in order.
func (b *Broadcaster) poster(ctx context.Context) {
	for {
		o, shutdown := b.queue.Get()
		if shutdown {
			return
		}
		if ev, ok := b.next(o); ok {
			b.serve(ctx, o, ev)
		}
		b.queue.Done(o)
	}
}

// next returns the object's oldest event. It parks the object if its namespace has
// as many posters as it may have. An object may be parked more than once, and have
// nothing left to say when its turn comes: that is the next one's then, or nobody
// would wake those that wait.
func (b *Broadcaster) next(o object) (*event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queued[o]) == 0 {
		b.wake(o.namespace)
		return nil, false
	}
	if b.posting[o.namespace] >= namespacePosters {
		b.parked[o.namespace] = append(b.parked[o.namespace], o)
		return nil, false
	}
	b.posting[o.namespace]++
	return b.queued[o][0], true
}

// serve tries to send the event, and plans what comes next for its object.
func (b *Broadcaster) serve(ctx context.Context, o object, ev *event) {
	err := b.post(ctx, ev)
	b.unpark(o.namespace)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return
	case transient(err) && b.queue.NumRequeues(o) < maxTries-1:
		b.queue.AddRateLimited(o)
		return
	default:
		b.giveUp(ctx, ev, err)
	}
	b.queue.Forget(o)
	if b.sent(o) {
		b.queue.Add(o)
	}
}

// unpark lets the next object of the namespace have the poster.
func (b *Broadcaster) unpark(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.posting[namespace]--; b.posting[namespace] == 0 {
		delete(b.posting, namespace)
	}
	b.wake(namespace)
}

// wake puts the object of the namespace that has waited longest into the queue. b.mu
// is held.
func (b *Broadcaster) wake(namespace string) {
	waiting := b.parked[namespace]
	if len(waiting) == 0 {
		return
	}
	b.queue.Add(waiting[0])
	if b.parked[namespace] = waiting[1:]; len(waiting) == 1 {
		delete(b.parked, namespace)
	}
}

// sent drops the object's oldest event, and reports whether there are more.
func (b *Broadcaster) sent(o object) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queued[o][0] = nil
	b.queued[o] = b.queued[o][1:]
	b.pending--
	if b.pending == 0 && b.empty != nil {
		close(b.empty)
		b.empty = nil
	}
	if len(b.queued[o]) > 0 {
		return true
	}
	delete(b.queued, o)
	return false
}

func (b *Broadcaster) giveUp(ctx context.Context, ev *event, err error) {
	reason := dropRefused
	if transient(err) {
		reason = dropTries
	}
	b.drop(reason, 1)
	b.cfg.Logger.InfoContext(ctx, "event not sent", slog.String("why", reason), slog.String("namespace", ev.about.Namespace),
		slog.String("name", ev.about.Name), slog.String("reason", ev.reason), slog.Any("error", err))
}

// transient reports whether another try may succeed. What is no answer of the API
// server is a connection that broke, or a write that was refused because the
// lease is not certain.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// post sends the event, or a patch of one that it repeats.
func (b *Broadcaster) post(ctx context.Context, ev *event) error {
	if ev.result == nil {
		result, err := b.correlator.EventCorrelate(b.message(ev))
		if err != nil {
			b.cfg.Logger.DebugContext(ctx, "event not patched", slog.Any("error", err)) // it is created
		}
		ev.result = result
	}
	if ev.result.Skip {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	stored, err := b.write(ctx, ev)
	if err != nil {
		ev.unanswered = transient(err)
		return err
	}
	b.correlator.UpdateState(stored)
	return nil
}

func (b *Broadcaster) write(ctx context.Context, ev *event) (*corev1.Event, error) {
	obj := ev.result.Event
	client := b.cfg.Client.Events(obj.Namespace)
	if obj.Count > 1 {
		stored, err := client.Patch(ctx, obj.Name, types.StrategicMergePatchType, ev.result.Patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return stored, err
		}
		// It has expired.
		obj.ResourceVersion = ""
	}
	for names := 1; ; names++ {
		stored, err := client.Create(ctx, obj, metav1.CreateOptions{})
		switch {
		case !apierrors.IsAlreadyExists(err):
			return stored, err
		case ev.unanswered:
			return obj, nil // The try before has made it.
		case names == maxNames:
			return nil, err
		}
		// Somebody else recorded one about this object in the same nanosecond.
		obj.Name = util.GenerateEventName(ev.about.Name, b.anotherName(ev))
	}
}

func (b *Broadcaster) anotherName(ev *event) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.nextName(ev.named)
}

// message is the event as the API has it.
func (b *Broadcaster) message(ev *event) *corev1.Event {
	at := metav1.NewTime(ev.at)
	namespace := ev.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: util.GenerateEventName(ev.about.Name, ev.named), Namespace: namespace, Annotations: ev.annotations},
		InvolvedObject: *ev.about,
		Reason:         ev.reason, Message: ev.message, Type: ev.kind,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: b.cfg.Component},
		ReportingController: b.cfg.Component,
	}
}

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

// poster sends the oldest event of an object, then of the next object, until the queue
// is shut down. The queue gives no object to two posters, so its events stay in order.
func (b *Broadcaster) poster(ctx context.Context) {
	for {
		o, shutdown := b.queue.Get()
		if shutdown {
			return
		}
		ev, unparked := b.backlog.oldest(o)
		b.enqueue(unparked)
		if ev != nil {
			b.serve(ctx, o, ev)
		}
		b.queue.Done(o)
	}
}

// enqueue makes an object due; nil: there is none.
func (b *Broadcaster) enqueue(o *object) {
	if o != nil {
		b.queue.Add(*o)
	}
}

// serve tries to send the event, and enqueues the object again if there is more to do.
func (b *Broadcaster) serve(ctx context.Context, o object, ev *event) {
	err := b.post(ctx, ev)
	b.enqueue(b.backlog.posted(o.namespace))
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
	if b.backlog.remove(o) {
		b.queue.Add(o)
	}
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

// transient reports whether another try may succeed. An error that the API server did not
// send is a broken connection, or a write that was refused because this replica is not
// certain to hold the lease.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
}

// post creates the event, or patches the event that it repeats.
func (b *Broadcaster) post(ctx context.Context, ev *event) error {
	if ev.result == nil {
		result, err := b.correlator.EventCorrelate(b.message(ev))
		if err != nil {
			b.cfg.Logger.DebugContext(ctx, "event cannot be combined with an earlier one, and is sent alone", slog.Any("error", err))
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
		// The event to patch has expired.
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
		// Another process recorded an event about this object in the same nanosecond.
		obj.Name = util.GenerateEventName(ev.about.Name, b.backlog.anotherName(ev))
	}
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

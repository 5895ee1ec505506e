package apiserver

import (
	"context"
	stderrors "errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// A watcher queues the events of one watch (watch.Interface). The queue has
// no bound: a write never waits for a reader.
type watcher struct {
	table     *table
	prefix    string
	recursive bool
	predicate storage.SelectionPredicate
	everyone  bool // The predicate selects all objects.
	after     uint64

	mu     sync.Mutex
	queue  []watch.Event
	wake   chan struct{}
	out    chan watch.Event
	stop   chan struct{}
	once   sync.Once
	server *Server
}

// Watch implements storage.Interface.
func (r *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	prefix, err := storage.PrepareKey(r.prefix, key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	from, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s := callerFrom(ctx).server
	w := &watcher{
		server: s, table: r.table(s), prefix: prefix, recursive: opts.Recursive,
		predicate: opts.Predicate, everyone: opts.Predicate.Empty(),
		wake: make(chan struct{}, 1), out: make(chan watch.Event), stop: make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := w.begin(from, opts); err != nil {
		return refusedWatch(err), nil
	}
	w.table.watches = append(w.table.watches, w)
	go w.pump(ctx)
	return w, nil
}

// begin queues the events before the watch began that it must deliver.
func (w *watcher) begin(from uint64, opts storage.ListOptions) error {
	initial := opts.SendInitialEvents
	switch {
	case initial != nil && *initial:
		if from > w.server.version {
			return storage.NewTooLargeResourceVersionError(from, w.server.version, 1)
		}
		w.describe()
		if opts.Predicate.AllowWatchBookmarks {
			w.push(watch.Bookmark, w.bookmark(true))
		}
	case from == 0 && initial == nil:
		w.describe()
	case from == 0:
		w.after = w.server.version
	case from < w.server.compacted:
		return errors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, w.server.compacted))
	default:
		w.after = from
		for _, c := range w.table.since(from) {
			w.see(c)
		}
	}
	return nil
}

// describe queues the objects that exist.
func (w *watcher) describe() {
	for _, v := range w.table.under(w.prefix) {
		if w.concerns(v.key) && w.matches(v) {
			w.push(watch.Added, shared{v})
		}
	}
	w.after = w.server.version
}

func (w *watcher) concerns(key string) bool {
	if w.recursive {
		return strings.HasPrefix(key, w.prefix)
	}
	return key == w.prefix
}

func (w *watcher) matches(v *version) bool {
	if v == nil || w.everyone {
		return v != nil
	}
	ok, err := w.predicate.Matches(v.internal)
	return err == nil && ok
}

// see queues the event of a change for the watch, if any. The caller holds the server's lock.
func (w *watcher) see(c *change) {
	one := c.current
	if one == nil {
		one = c.previous
	}
	if c.number <= w.after || !w.concerns(one.key) {
		return
	}
	is, was := w.matches(c.current), w.matches(c.previous)
	switch {
	case is && was:
		w.push(watch.Modified, shared{c.current})
	case is:
		w.push(watch.Added, shared{c.current})
	case was:
		w.push(watch.Deleted, shared{c.seenLast()})
	}
}

func (w *watcher) push(kind watch.EventType, obj runtime.Object) {
	w.mu.Lock()
	w.queue = append(w.queue, watch.Event{Type: kind, Object: obj})
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []watch.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.queue
	w.queue = nil
	return events
}

// pump delivers the queue until the watch ends.
func (w *watcher) pump(ctx context.Context) {
	defer close(w.out)
	defer w.Stop()
	for {
		for _, event := range w.take() {
			select {
			case w.out <- event:
			case <-w.stop:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-w.wake:
		case <-w.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.out }

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.once.Do(func() {
		close(w.stop)
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		w.table.forget(w)
	})
}

func (t *table) forget(gone *watcher) {
	for i, w := range t.watches {
		if w == gone {
			t.watches = append(t.watches[:i:i], t.watches[i+1:]...)
			return
		}
	}
}

// refusedWatch returns a watch that delivers an error, and ends. A server with a watch cache
// refuses in this way (cacher.newErrWatcher).
func refusedWatch(err error) watch.Interface {
	status := &metav1.Status{
		Status: metav1.StatusFailure, Message: err.Error(),
		Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
	}
	var known *errors.StatusError
	if stderrors.As(err, &known) {
		status = &known.ErrStatus
	}
	out := make(chan watch.Event, 1)
	out <- watch.Event{Type: watch.Error, Object: status}
	close(out)
	return watch.NewProxyWatcher(out)
}

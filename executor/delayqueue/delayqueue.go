// Package delayqueue is a work queue to which items can be added after a delay.
//
// It replaces client-go's delaying queue. That one has a goroutine that wakes up every
// ten seconds even if nothing waits. This one has a single timer, for the item that is
// due next, and none while nothing waits.
package delayqueue

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queue adds items to the embedded queue when they are due. An item waits at most once.
type queue[T comparable] struct {
	workqueue.TypedInterface[T]
	retries workqueue.CounterMetric // Counts calls of AddAfter; nil: there are no metrics.

	mu      sync.Mutex
	waiting line[T]
	items   map[T]*entry[T] // What is in waiting, by item.
	timer   *time.Timer
	next    time.Time // When the timer fires, no later than the first item is due; zero: it is stopped.
}

// New returns a queue. The name is a label of its metrics; without a name there are none.
func New[T comparable](name string, metrics workqueue.MetricsProvider) workqueue.TypedDelayingInterface[T] {
	q := &queue[T]{
		TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, MetricsProvider: metrics}),
		items:          map[T]*entry[T]{},
	}
	if name != "" {
		q.retries = metrics.NewRetriesMetric(name)
	}
	return q
}

// AddAfter adds the item after the delay; a delay of 0 or less adds it at once. If the
// item waits already, the delay that ends first counts.
func (q *queue[T]) AddAfter(item T, delay time.Duration) {
	if q.ShuttingDown() {
		return
	}
	if q.retries != nil {
		q.retries.Inc()
	}
	if delay <= 0 {
		q.Add(item)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.await(item, time.Now().Add(delay))
	q.arm()
}

func (q *queue[T]) await(item T, due time.Time) {
	known := q.items[item]
	switch {
	case known == nil:
		known = &entry[T]{item: item, due: due}
		q.items[item] = known
		heap.Push(&q.waiting, known)
	case due.Before(known.due):
		known.due = due
		heap.Fix(&q.waiting, known.at)
	}
}

// arm sets the timer for the first item, unless it fires earlier anyway.
func (q *queue[T]) arm() {
	if q.ShuttingDown() || len(q.waiting) == 0 || !q.next.IsZero() && !q.waiting[0].due.Before(q.next) {
		return
	}
	q.next = q.waiting[0].due
	wait := time.Until(q.next)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.release)
		return
	}
	q.timer.Reset(wait)
}

// release adds the items that are due. The timer calls it.
func (q *queue[T]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = time.Time{}
	now := time.Now()
	for len(q.waiting) > 0 && !q.waiting[0].due.After(now) {
		due := heap.Pop(&q.waiting).(*entry[T])
		delete(q.items, due.item)
		q.Add(due.item)
	}
	q.arm()
}

// ShutDown ends the queue. Items that still wait are never added.
func (q *queue[T]) ShutDown() {
	q.TypedInterface.ShutDown()
	q.stop()
}

// ShutDownWithDrain ends the queue, and waits until all items taken from it are done.
func (q *queue[T]) ShutDownWithDrain() {
	q.TypedInterface.ShutDownWithDrain()
	q.stop()
}

func (q *queue[T]) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.items = nil, map[T]*entry[T]{}
	if q.timer != nil {
		q.timer.Stop()
	}
}

// An entry is an item that waits.
type entry[T comparable] struct {
	item T
	due  time.Time
	at   int // Its place in the line.
}

// A line is a heap: the entry that is due first is the first.
type line[T comparable] []*entry[T]

// Len implements heap.Interface.
func (l line[T]) Len() int { return len(l) }

// Less implements heap.Interface.
func (l line[T]) Less(i, j int) bool { return l[i].due.Before(l[j].due) }

// Swap implements heap.Interface.
func (l line[T]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = i, j
}

// Push implements heap.Interface.
func (l *line[T]) Push(x any) {
	e := x.(*entry[T])
	e.at = len(*l)
	*l = append(*l, e)
}

// Pop implements heap.Interface.
func (l *line[T]) Pop() any {
	last := len(*l) - 1
	e := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return e
}

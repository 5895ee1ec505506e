package clock

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// NewQueue returns a work queue to which items can be added after a delay: client-go's, without
// its goroutine that wakes up every ten seconds even if nothing waits. The name is a label of its
// metrics; without a name there are none. End it by ShutDown: ShutDownWithDrain leaves the
// goroutine behind.
func NewQueue[T comparable](name string, metrics workqueue.MetricsProvider) workqueue.TypedDelayingInterface[T] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Name: name, MetricsProvider: metrics, Clock: quiet{},
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, MetricsProvider: metrics}),
	})
}

// quiet is the real clock with tickers that never tick. The queue has its own timer for the item
// that is due next, so its ticker does nothing but wake it up.
type quiet struct{ clock.RealClock }

// NewTicker implements clock.WithTicker.
func (quiet) NewTicker(time.Duration) clock.Ticker { return never{} }

type never struct{}

// C implements clock.Ticker.
func (never) C() <-chan time.Time { return nil }

// Stop implements clock.Ticker.
func (never) Stop() {}

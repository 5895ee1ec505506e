package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"jobpolicy.dev/executor/internal/telemetry"
)

func TestItemsComeWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string]("", nil)
		began := time.Now()
		q.AddAfter("late", time.Hour)
		q.AddAfter("soon", time.Minute)
		q.AddAfter("soon", time.Second)
		q.AddAfter("now", 0)
		for _, want := range []struct {
			item string
			at   time.Duration
		}{{"now", 0}, {"soon", time.Second}, {"late", time.Hour}} {
			if item, _ := q.Get(); item != want.item || time.Since(began) != want.at {
				t.Errorf("%q came after %v, want %q after %v", item, time.Since(began), want.item, want.at)
			}
		}
		q.AddAfter("after the end", time.Second)
		q.ShutDown()
		time.Sleep(time.Minute)
		if item, over := q.Get(); !over {
			t.Errorf("%q came out of a queue that is shut down", item)
		}
	})
}

func TestRetriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := telemetry.NewShared(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue[string]("jobs", shared.Queues)
		q.AddAfter("a", time.Second)
		q.AddAfter("a", 0)
		if n := testutil.ToFloat64(shared.Queues.NewRetriesMetric("jobs").(prometheus.Counter)); n != 2 {
			t.Errorf("%v retries of \"jobs\", want 2", n)
		}
		q.ShutDown()
	})
}

func TestTheClockNeverTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		select {
		case <-quiet{}.NewTicker(time.Nanosecond).C():
			t.Error("the queue wakes up although nothing is due")
		case <-time.After(time.Hour):
		}
	})
}

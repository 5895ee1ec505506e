package delayqueue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/metrics"
)

// An arrival is an item that came out of a queue.
type arrival struct {
	item string
	at   time.Duration
}

// arrivals lists what comes out of a queue from now on.
func arrivals(q workqueue.TypedInterface[string]) func() []arrival {
	began := time.Now()
	var got []arrival
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			item, over := q.Get()
			if over {
				return
			}
			got = append(got, arrival{item, time.Since(began)})
			q.Done(item)
		}
	}()
	return func() []arrival {
		synctest.Wait()
		q.ShutDown()
		<-done
		return got
	}
}

func TestAddAfter(t *testing.T) {
	type add struct {
		item  string
		delay time.Duration
	}
	cases := map[string]struct {
		adds []add
		want []arrival
	}{
		"items come when they are due":                  {[]add{{"late", 2 * time.Hour}, {"soon", time.Second}}, []arrival{{"soon", time.Second}, {"late", 2 * time.Hour}}},
		"no delay means at once":                        {[]add{{"a", 0}, {"b", -1}}, []arrival{{"a", 0}, {"b", 0}}},
		"an earlier time replaces a later one":          {[]add{{"a", time.Hour}, {"b", time.Minute}, {"a", time.Second}}, []arrival{{"a", time.Second}, {"b", time.Minute}}},
		"a later time does not replace an earlier one":  {[]add{{"a", time.Second}, {"a", time.Hour}}, []arrival{{"a", time.Second}}},
		"an item that came may wait again":              {[]add{{"a", 0}, {"a", time.Second}}, []arrival{{"a", 0}, {"a", time.Second}}},
		"several at the same time come together":        {[]add{{"a", time.Second}, {"b", time.Second}}, []arrival{{"a", time.Second}, {"b", time.Second}}},
		"nothing comes if nothing is added":             {},
		"an item before the one that the timer is for ": {[]add{{"a", time.Minute}, {"b", time.Second}}, []arrival{{"b", time.Second}, {"a", time.Minute}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New[string]("", nil)
				got := arrivals(q)
				for _, a := range tc.adds {
					q.AddAfter(a.item, a.delay)
				}
				time.Sleep(3 * time.Hour)
				if diff := cmp.Diff(tc.want, got(), cmp.AllowUnexported(arrival{})); diff != "" {
					t.Errorf("arrivals (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLikeClientGo compares the queue with client-go's: the same items come at the same
// times.
func TestLikeClientGo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type add struct {
			item         string
			pause, delay time.Duration
		}
		adds := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) add {
			return add{
				rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "item"),
				time.Duration(rapid.IntRange(0, 30).Draw(rt, "pause")) * time.Second,
				time.Duration(rapid.IntRange(-1, 60).Draw(rt, "delay")) * time.Second,
			}
		})).Draw(rt, "adds")
		play := func(q workqueue.TypedDelayingInterface[string]) []arrival {
			got := arrivals(q)
			for _, a := range adds {
				time.Sleep(a.pause)
				synctest.Wait()
				q.AddAfter(a.item, a.delay)
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			all := got()
			slices.SortFunc(all, func(a, b arrival) int { // What is due at the same time has no order.
				if a.at != b.at {
					return int(a.at - b.at)
				}
				return int(a.item[0]) - int(b.item[0])
			})
			return all
		}
		synctest.Test(t, func(*testing.T) {
			want := play(workqueue.NewTypedDelayingQueue[string]())
			if diff := cmp.Diff(want, play(New[string]("", nil)), cmp.AllowUnexported(arrival{})); diff != "" {
				rt.Fatalf("arrivals (-client-go +ours):\n%s", diff)
			}
		})
	})
}

func TestNothingComesAfterShutDown(t *testing.T) {
	ends := map[string]func(workqueue.TypedInterface[string]){
		"at once":        workqueue.TypedInterface[string].ShutDown,
		"after the work": workqueue.TypedInterface[string].ShutDownWithDrain,
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New[string]("", nil)
				q.AddAfter("before", time.Second)
				end(q)
				q.AddAfter("after", time.Second)
				q.AddAfter("at once", 0)
				time.Sleep(time.Minute)
				if item, over := q.Get(); !over {
					t.Errorf("%q came out of a queue that is shut down", item)
				}
			})
		})
	}
}

func TestRetriesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, err := metrics.NewShared(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		q := New[string]("jobs", shared.Queues)
		q.AddAfter("a", time.Second)
		q.AddAfter("a", 0)
		if n := testutil.ToFloat64(shared.Queues.NewRetriesMetric("jobs").(prometheus.Counter)); n != 2 {
			t.Errorf("%v retries of \"jobs\", want 2", n)
		}
		q.ShutDown()
	})
}

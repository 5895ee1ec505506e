package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const normal = corev1.EventTypeNormal

// TestABurstLosesNothing: two events of each of 2,000 Jobs at once, and an API
// server that answers each tenth request with an error.
func TestABurstLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 2000
		s := newServer()
		var mu sync.Mutex
		asked := 0
		fail := func(*corev1.Event) error {
			mu.Lock()
			defer mu.Unlock()
			switch asked++; asked % 20 {
			case 0:
				return unavailable()
			case 10:
				return errBroken
			}
			return nil
		}
		s.before, s.after = fail, fail // Of those after, the write has taken effect.
		b := start(t, s)
		want := map[string][]string{}
		for i := range jobs {
			j := job(fmt.Sprint("ns", i%3), fmt.Sprint("job", i))
			b.Event(j, normal, "SuccessfulCreate", "Created pod")
			b.Eventf(j, normal, "Completed", "Job %s", "completed")
			want[j.Name] = []string{"SuccessfulCreate", "Completed"}
		}
		began := time.Now()
		b.Drain(t.Context())
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s, want at most 10s", took)
		}
		s.wantSaid(t, want)
	})
}

func TestAnEventWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lost := false
		s.after = func(*corev1.Event) error {
			if lost {
				return nil
			}
			lost = true
			return errBroken
		}
		b := start(t, s)
		b.Event(job("ns", "job"), normal, "Completed", "x")
		b.Drain(t.Context())
		s.wantSaid(t, map[string][]string{"job": {"Completed"}})
	})
}

// TestNamesThatOthersGaveAreAvoided: another controller tells something about the
// same object in the same nanosecond.
func TestNamesThatOthersGaveAreAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		one, other := start(t, s), start(t, s)
		for i := range 3 {
			one.Event(job("ns", "job"), normal, fmt.Sprint("One", i), "x")
			other.Event(job("ns", "job"), normal, fmt.Sprint("Other", i), "x")
		}
		one.Drain(t.Context())
		other.Drain(t.Context())
		got := s.said()["job"]
		slices.Sort(got)
		if diff := cmp.Diff([]string{"One0", "One1", "One2", "Other0", "Other1", "Other2"}, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestARefusedEventIsNotTriedAgainAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		tries := 0
		s.before = func(ev *corev1.Event) error {
			if ev.Reason != "Refused" {
				return nil
			}
			tries++
			return apierrors.NewForbidden(corev1.Resource("events"), ev.Name, errors.New("namespace is going"))
		}
		b := start(t, s)
		b.Event(job("ns", "job"), normal, "Refused", "x")
		b.Event(job("ns", "job"), normal, "Completed", "x")
		b.Drain(t.Context())
		if diff := cmp.Diff(map[string][]string{"job": {"Completed"}}, s.said()); diff != "" || tries != 1 {
			t.Errorf("tries: %d; events (-want +got):\n%s", tries, diff)
		}
		assertDropped(t, b, dropRefused, 1)
	})
}

func TestAnAPIServerThatStaysAwayIsGivenUpOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var back atomic.Bool
		var tries atomic.Int32
		s.before = func(*corev1.Event) error {
			if tries.Add(1); !back.Load() {
				return unavailable()
			}
			return nil
		}
		b := start(t, s)
		b.Event(job("ns", "job"), normal, "Lost", "x")
		time.Sleep(10 * time.Minute)
		if got := tries.Load(); got != maxTries {
			t.Errorf("%d tries, want %d", got, maxTries)
		}
		assertDropped(t, b, dropTries, 1)
		back.Store(true)
		b.Event(job("ns", "job"), normal, "Completed", "x")
		b.Drain(t.Context())
		s.wantSaid(t, map[string][]string{"job": {"Completed"}})
	})
}

// TestABacklogOfANamespaceIsSent: more events come of one namespace than may be posted
// there at once, and objects get their second one while the first still waits.
func TestABacklogOfANamespaceIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 3))
		s := newServer()
		s.latency = 10 * time.Millisecond
		b := start(t, s)
		want := map[string][]string{}
		var recorded sync.WaitGroup
		for i := range 400 {
			name := fmt.Sprint("job", i)
			want[name] = []string{"SuccessfulCreate", "Completed"}
			created, ran := time.Duration(random.IntN(1000))*time.Millisecond, time.Duration(random.IntN(1000))*time.Millisecond
			recorded.Go(func() {
				time.Sleep(created)
				b.Event(job("ns", name), normal, "SuccessfulCreate", "x")
				time.Sleep(ran)
				b.Event(job("ns", name), normal, "Completed", "x")
			})
		}
		recorded.Wait()
		time.Sleep(10 * time.Second)
		s.wantSaid(t, want)
	})
}

// TestANamespaceThatHangsDelaysNoOther: a webhook there does not answer.
func TestANamespaceThatHangsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.before = func(ev *corev1.Event) error {
			if ev.Namespace == "hangs" {
				time.Sleep(20 * time.Second)
				return unavailable()
			}
			return nil
		}
		b := start(t, s)
		for i := range 100 {
			b.Event(job("hangs", fmt.Sprint("job", i)), normal, "Completed", "x")
		}
		time.Sleep(time.Second)
		b.Event(job("fine", "fine"), normal, "Completed", "x")
		time.Sleep(time.Second)
		s.wantSaid(t, map[string][]string{"fine": {"Completed"}})
	})
}

func TestTheLimitsOfAnObjectAreThoseOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		b := start(t, s)
		for i := range 30 {
			b.Eventf(job("ns", "job"), normal, "SuccessfulCreate", "Created pod: %d", i)
		}
		b.Event(job("ns", "other"), normal, "Completed", "x")
		b.Event(job("ns", "other"), normal, "Completed", "x") // it is counted
		b.Drain(t.Context())
		// 9 as they are, then one that combines the others, patched until 25 are written.
		if events, writes := len(s.stored), len(s.order); events != 9+1+1 || writes != 25+2 {
			t.Errorf("%d events by %d writes, want 11 by 27", events, writes)
		}
		for _, ev := range s.stored {
			if ev.InvolvedObject.Name == "other" && ev.Count != 2 {
				t.Errorf("count = %d, want 2", ev.Count)
			}
		}
	})
}

// client-go counts what its limits have dropped, too.
func TestACombinedEventCountsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		b := start(t, s)
		pods := new(Allowance).Recorder(b)
		create := func(n int) { pods.Eventf(job("ns", "job"), normal, "SuccessfulCreate", "Created pod: %d", n) }
		for n := range burst + 5 {
			create(n)
		}
		time.Sleep(6 * time.Minute) // There may be one more.
		create(burst + 5)
		b.Drain(t.Context())
		var sent int32
		for _, ev := range s.stored {
			sent += ev.Count
		}
		if sent != burst+1 {
			t.Errorf("the counts of %d events add up to %d, want %d, as many as were sent", len(s.stored), sent, burst+1)
		}
	})
}

func TestMoreThanThereIsRoomForIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{Client: newServer(), Component: "tester"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxQueued + 7 {
			b.Event(job("ns", fmt.Sprint(i)), normal, "Completed", "x")
		}
		assertDropped(t, b, dropFull, 7)
		b.Shutdown()
		assertDropped(t, b, dropStopped, maxQueued)
		b.Event(job("ns", "late"), normal, "Completed", "x")
		assertDropped(t, b, dropStopped, maxQueued+1)
	})
}

func TestADrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.before = func(*corev1.Event) error { return unavailable() }
		b := start(t, s)
		b.Event(job("ns", "job"), normal, "Completed", "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		b.Drain(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("drained for %s, want 1s", took)
		}
		b.Shutdown()
		assertDropped(t, b, dropStopped, 1)
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{"no client": {Component: "x"}, "no component": {Client: newServer()}} {
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: New() = %v, want ErrConfig", name, err)
		}
	}
}

func assertDropped(t *testing.T, b *Broadcaster, reason string, want float64) {
	t.Helper()
	if got := testutil.ToFloat64(b.dropped.WithLabelValues("tester", reason)); got != want {
		t.Errorf("dropped, %s: %v, want %v", reason, got, want)
	}
}

package probes

import (
	"context"
	"errors"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/services/internal/testenv"
)

// A loop is a leader with one queue, which does what a test says.
type loop struct {
	load  QueueLoad
	watch *Watch
	log   *testenv.Log
}

// queueLabel is the label of goroutines that names their queue.
const queueLabel = "queue"

// looks is how many looks make a standstill, and half as many a lost lease.
const looks = 6

func start(t *testing.T, holds func() error) *loop {
	t.Helper()
	l := &loop{load: QueueLoad{Name: "job"}, log: &testenv.Log{}}
	l.watch = l.newWatch(func() error { return nil }, holds)
	ctx, stop := context.WithCancel(t.Context())
	leading, ended := make(chan struct{}), make(chan error, 1)
	work := func(ctx context.Context) error {
		close(leading)
		<-ctx.Done()
		return nil
	}
	go func() { ended <- l.watch.Lead(work)(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-leading
	return l
}

func (l *loop) newWatch(ready, holds func() error) *Watch {
	return NewWatch(WatchConfig{
		QueueLabel: queueLabel, Queues: func() []QueueLoad { return []QueueLoad{l.load} }, Ready: ready, Holds: holds, Logger: l.log.Logger(),
		Period: time.Second, StallTimeout: looks * time.Second, End: looks / 2 * time.Second,
	})
}

// after is what the check says after so many looks.
func (l *loop) after(t *testing.T, n int) error {
	t.Helper()
	for range n {
		l.watch.look()
	}
	return l.watch.Check().Run(t.Context())
}

func TestAStalledQueueIsUnhealthyUntilItMoves(t *testing.T) {
	l := start(t, nil)
	if err := l.after(t, 10*looks); err != nil {
		t.Errorf("nothing is due: %v, want nil", err)
	}
	l.load.Due = 2
	if err := l.after(t, looks); err != nil {
		t.Errorf("one look too early: %v, want nil", err)
	}
	testenv.WantError(t, l.after(t, 1), "queue job is stalled")
	if !strings.Contains(l.log.String(), "probes.start.func") || l.log.Count("process stalled") != 1 {
		t.Errorf("the log does not say once where the process stands:\n%s", l.log)
	}
	l.load = QueueLoad{Name: "job", Due: 1, Done: 1}
	if err := l.after(t, 1); err != nil {
		t.Errorf("the queue moves again: %v, want nil", err)
	}
}

// Each reconcile of a large Job may take longer than StallTimeout, and the queue of other
// Jobs may be long meanwhile.
func TestWritesAreProgress(t *testing.T) {
	l := start(t, nil)
	l.load.Due = 1
	client := http.Client{Transport: l.watch.CountRequests(answering{})}
	for range 10 * looks {
		if resp, err := client.Post("http://api", "", nil); err == nil {
			_ = resp.Body.Close()
		}
		if err := l.after(t, 1); err != nil {
			t.Fatalf("something is written: %v, want nil", err)
		}
	}
	for range looks {
		if resp, err := client.Get("http://api?watch=true"); err == nil {
			_ = resp.Body.Close()
		}
		l.watch.look()
	}
	if err := l.after(t, 0); err == nil {
		t.Error("watches count as progress")
	}
}

type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// What other queues do is no progress of this one. What nobody in particular does may be.
func TestRequestsForAnotherQueueAreNoProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		ctx     context.Context
		wantErr bool
	}{
		"for this queue":             {pprof.WithLabels(t.Context(), pprof.Labels(queueLabel, "job")), false},
		"for another queue":          {pprof.WithLabels(t.Context(), pprof.Labels(queueLabel, "cronjob")), true},
		"for no queue in particular": {t.Context(), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, nil)
			l.load.Due = 1
			client := l.watch.CountRequests(answering{})
			for range 2 * looks {
				req, err := http.NewRequestWithContext(tc.ctx, http.MethodPost, "http://api", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				l.watch.look()
			}
			if err := l.after(t, 0); (err != nil) != tc.wantErr {
				t.Errorf("%v, want an error: %v", err, tc.wantErr)
			}
		})
	}
}

// An API server that does not answer is no reason for a restart.
func TestWhoWaitsForTheAPIServerIsNotStalled(t *testing.T) {
	l := start(t, nil)
	l.load.Due = 1
	silent := silent{make(chan struct{}), make(chan struct{})}
	client := http.Client{Transport: l.watch.CountRequests(silent)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := client.Post("http://api", "", nil); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-silent.asked
	if err := l.after(t, 10*looks); err != nil {
		t.Errorf("while the API server is silent: %v, want nil", err)
	}
	close(silent.answer)
	<-ended
	if err := l.after(t, looks+1); err == nil { // the answer itself is progress
		t.Error("it is stalled although the API server has answered, and is taken for healthy")
	}
}

// silent answers when it is told to.
type silent struct{ asked, answer chan struct{} }

func (s silent) RoundTrip(*http.Request) (*http.Response, error) {
	close(s.asked)
	<-s.answer
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A replica that does not lead has nothing to do, and one that ends does nothing more.
func TestOnlyALeaderMustMove(t *testing.T) {
	ready, l := false, &loop{load: QueueLoad{Name: "job", Due: 1}, log: &testenv.Log{}}
	l.watch = l.newWatch(func() error {
		if ready {
			return nil
		}
		return errors.New("not ready")
	}, nil)
	expect := func(when string, wantErr bool) {
		if err := l.after(t, 2*looks); (err != nil) != wantErr {
			t.Errorf("%s: %v, want an error: %v", when, err, wantErr)
		}
	}
	expect("before it leads", false)
	ctx, stop := context.WithCancel(t.Context())
	err := l.watch.Lead(func(ctx context.Context) error {
		expect("while the caches are filled", false)
		ready = true
		expect("while it leads", true)
		stop()
		<-ctx.Done()
		testenv.Eventually(t, func() error { // The context tells the watch in a goroutine.
			l.watch.look()
			return l.watch.Check().Run(context.Background())
		})
		expect("while it ends", false)
		return nil
	})(ctx)
	if err != nil {
		t.Error(err)
	}
	expect("afterwards", false)
}

func TestAProcessThatDoesNotEndWithoutItsLeaseIsUnhealthy(t *testing.T) {
	lost := errors.New("not the leader")
	var state error
	l := start(t, func() error { return state })
	if err := l.after(t, looks); err != nil {
		t.Errorf("it holds the lease: %v, want nil", err)
	}
	state = lost
	if err := l.after(t, looks/2-1); err != nil {
		t.Errorf("one look too early: %v, want nil", err)
	}
	if err := l.after(t, 1); !errors.Is(err, lost) {
		t.Errorf("it lost the lease and goes on: %v, want %v", err, lost)
	}
}

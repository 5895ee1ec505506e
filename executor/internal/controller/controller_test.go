package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/executor/internal/telemetry"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func testConfig() Config {
	return Config{
		Decider: &engine{}, Client: fake.NewClientset(), ManagedBy: "test", Workers: 2, APIBackoff: time.Second, MaxAPIBackoff: 8 * time.Second,
		Telemetry: Telemetry{Logger: slog.New(slog.DiscardHandler), TracerProvider: noop.NewTracerProvider()},
	}
}

// log records what was reconciled: key, cause, and when in seconds.
type log struct {
	began time.Time
	mu    sync.Mutex
	lines []string
}

func newLog() *log { return &log{began: time.Now()} }

func (l *log) add(ctx context.Context, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s %g", key, TriggerOf(ctx).Cause, time.Since(l.began).Seconds()))
}

// take returns the lines since the last call.
func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// returning is a Reconcile that adds to the log, and returns this.
func (l *log) returning(result Result, err error) func(context.Context, string) (Result, error) {
	return func(ctx context.Context, key string) (Result, error) {
		l.add(ctx, key)
		return result, err
	}
}

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.take()); diff != "" {
		t.Errorf("reconciles (-want +got):\n%s", diff)
	}
}

func newController(t *testing.T, cfg Config) *Controller {
	t.Helper()
	c, err := New(cfg, Identity{Component: "test", Scope: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newQueue makes a queue in which each key has a namespace of its own, unless o says otherwise.
func newQueue(c *Controller, o Options[string]) *Queue[string] {
	if o.Namespace == nil {
		o.Namespace = func(key string) string { return key }
	}
	return NewQueue(c, o)
}

// start runs a Controller with one queue for the length of the test. It must be called
// in a bubble of synctest.
func start(t *testing.T, cfg Config, o Options[string]) (*Controller, *Queue[string]) {
	t.Helper()
	c := newController(t, cfg)
	q := newQueue(c, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	synctest.Wait()
	return c, q
}

func TestEventsOfAKeyAreOneReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := newLog(), make(chan struct{})
		_, q := start(t, testConfig(), Options[string]{Reconcile: func(ctx context.Context, key string) (Result, error) {
			l.add(ctx, key)
			<-release
			return Result{}, nil
		}})
		q.Enqueue("a", "first", PriorityNormal)
		synctest.Wait()
		q.Enqueue("a", "second", PriorityNormal)
		q.Enqueue("a", "third", PriorityNormal)
		synctest.Wait()
		l.want(t, "a first 0") // The key is with one worker at a time.
		close(release)
		synctest.Wait()
		l.want(t, "a second 0")
	})
}

// A key is in the queue for two reasons, and the first reconcile settles both. Or a reconcile is
// planned for later than the key was queued for.
func TestAKeyIsNotReconciledWithoutAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, release := newLog(), make(chan struct{})
		requeue := map[string]time.Duration{"planned": 20 * time.Second}
		_, q := start(t, testConfig(), Options[string]{MinInterval: time.Second, Reconcile: func(ctx context.Context, key string) (Result, error) {
			l.add(ctx, key)
			if key == "held" {
				<-release
			}
			return Result{RequeueAfter: requeue[key]}, nil
		}, Namespace: func(key string) string { return "ns" }, MaxInProgress: 1})
		for _, key := range []string{"a", "planned"} {
			q.EnqueueAfter(key, "detail", PriorityNormal, 10*time.Second)
			q.Enqueue(key, "event", PriorityNormal)
			synctest.Wait()
		}
		q.Enqueue("held", "event", PriorityNormal)
		synctest.Wait()
		q.Enqueue("b", "first", PriorityNormal) // It waits for a slot.
		synctest.Wait()
		q.Enqueue("b", "second", PriorityNormal)
		synctest.Wait()
		close(release)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		l.want(t, "a detail 0", "planned detail 0", "held event 0", "b first 0", "planned timer 20")
	})
}

// Profiles and requests tell for which queue something is done.
func TestAReconcileHasTheNameOfItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inContext, inProfile string
		_, q := start(t, testConfig(), Options[string]{Name: "widgets", Reconcile: func(ctx context.Context, _ string) (Result, error) {
			inContext, _ = pprof.Label(ctx, QueueLabel)
			var stacks bytes.Buffer
			err := pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			_, after, _ := strings.Cut(stacks.String(), `labels: {"queue":`)
			inProfile, _, _ = strings.Cut(after, "}")
			return Result{}, err
		}})
		q.Enqueue("a", CauseTimer, PriorityHigh)
		synctest.Wait()
		if inContext != "widgets" || inProfile != `"widgets"` {
			t.Errorf("the queue is %q in the context and %q in the profile, want widgets in both", inContext, inProfile)
		}
	})
}

// A queue that is worked on gets shorter, or its count grows; one that stands still shows neither.
func TestAQueueSaysWhatIsDueAndWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c, q := start(t, testConfig(), Options[string]{Name: "widgets", MaxInProgress: 1, Reconcile: func(context.Context, string) (Result, error) {
			<-proceed
			return Result{}, nil
		}})
		want := func(when string, due int, done uint64) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff([]QueueLoad{{"widgets", due, done}}, c.Queues()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		want("nothing is due", 0, 0)
		q.Enqueue("a", CauseTimer, PriorityNormal)
		synctest.Wait()
		q.Enqueue("b", CauseTimer, PriorityNormal)
		q.EnqueueAfter("later", CauseTimer, PriorityNormal, time.Hour)
		want("one is in progress and one waits for its slot", 2, 0)
		q.Enqueue("a", CauseTimer, PriorityNormal)
		want("the one in progress is due again", 2, 0) // Until it is done, it is not in the queue.
		proceed <- struct{}{}
		want("the first is done, and due again", 2, 1)
		close(proceed)
		want("all are done", 0, 3)
	})
}

func TestABusyKeyIsReconciledAtIntervalsUnlessItHasHighPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{MinInterval: time.Second, Reconcile: l.returning(Result{}, nil)})
		q.Enqueue("a", "event", PriorityNormal)
		synctest.Wait()
		l.want(t, "a event 0")
		q.Enqueue("a", "event", PriorityNormal)
		time.Sleep(1500 * time.Millisecond)
		l.want(t, "a event 1")
		q.Enqueue("a", "urgent", PriorityHigh)
		synctest.Wait()
		l.want(t, "a urgent 1.5")
	})
}

func TestLowPriorityGivesWayForSomeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{
			Low:       LowPriority{Busy: func() bool { return true }, Period: time.Second, Max: 10 * time.Second},
			Reconcile: l.returning(Result{}, nil),
		})
		q.Enqueue("a", "low", PriorityLow)
		q.Enqueue("b", "low", PriorityLow)
		time.Sleep(2500 * time.Millisecond)
		q.Enqueue("b", "event", PriorityNormal)
		time.Sleep(time.Minute)
		l.want(t, "b low 2.5", "a low 10")
	})
}

func TestFailuresBackOff(t *testing.T) {
	cases := map[string]struct {
		err        error
		eventsWait bool
		want       []string
	}{
		"the delay doubles up to its limit": {
			err:  errors.New("no"),
			want: []string{"a event 0", "a retry 1", "a retry 3", "a retry 7", "a retry 15", "a another 20", "a retry 28"},
		},
		"an event waits for the end of the delay": {
			err: errors.New("no"), eventsWait: true,
			want: []string{"a event 0", "a retry 1", "a retry 3", "a retry 7", "a retry 15", "a another 23"},
		},
		"only the engine or the object can help": {
			err:  fmt.Errorf("%w: no", ErrRejected),
			want: []string{"a event 0", "a retry 8", "a retry 16", "a another 20", "a retry 28"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLog()
				_, q := start(t, testConfig(), Options[string]{EventsWait: tc.eventsWait, Reconcile: l.returning(Result{}, tc.err)})
				q.Enqueue("a", "event", PriorityNormal)
				time.Sleep(20 * time.Second)
				q.Enqueue("a", "another", PriorityNormal)
				time.Sleep(10 * time.Second)
				l.want(t, tc.want...)
			})
		})
	}
}

// A write that keeps failing does not hold up what is due at a time.
func TestAFailureHoldsUpNothingThatIsDueSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{Reconcile: l.returning(Result{RequeueAfter: 3 * time.Second}, errors.New("no"))})
		q.Enqueue("a", "event", PriorityNormal)
		time.Sleep(10 * time.Second)
		l.want(t, "a event 0", "a retry 1", "a retry 3", "a retry 6", "a retry 9")
	})
}

func TestAnErrorThatNobodyHasToActOnIsNotLogged(t *testing.T) {
	quiet := errors.New("quiet")
	for failure, want := range map[error]int{quiet: 0, fmt.Errorf("as part of another: %w", quiet): 0, errors.New("loud"): 1} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			cfg := testConfig()
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			_, q := start(t, cfg, Options[string]{
				Reconcile: func(context.Context, string) (Result, error) { return Result{}, failure },
				Quiet:     func(err error) bool { return errors.Is(err, quiet) },
			})
			q.Enqueue("a", "event", PriorityNormal)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if got := strings.Count(log.String(), "reconcile failed"); got != want {
				t.Errorf("%q is logged %d times, want %d", failure, got, want)
			}
		})
	}
}

func TestProgressMakesTheNextFailureAFirstOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{Reconcile: func(ctx context.Context, key string) (Result, error) {
			l.add(ctx, key)
			return Result{Progressed: TriggerOf(ctx).Cause != "event"}, errors.New("no")
		}})
		q.Enqueue("a", "event", PriorityNormal)
		time.Sleep(3500 * time.Millisecond)
		l.want(t, "a event 0", "a retry 1", "a retry 2", "a retry 3")
	})
}

// Invariant I11: whatever Reconcile says, there is a pause now and then.
func TestNoResultMakesAHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{Reconcile: l.returning(Result{Requeue: true}, nil)})
		q.Enqueue("a", "event", PriorityNormal)
		time.Sleep(1100 * time.Millisecond)
		if n, most := len(l.take()), 6*maxImmediate; n != most {
			t.Errorf("%d reconciles in 1.1 s, want %d", n, most)
		}
		past := At(timestamppb.New(time.Unix(1, 0)), time.Unix(2, 0))
		if past.RequeueAfter <= 0 {
			t.Errorf("a time that is over is due after %v, want a time in the future", past.RequeueAfter)
		}
	})
}

// A planned reconcile in the far future is shortened: the object may be deleted before, and
// the time may come from a wrong clock.
func TestNoReconcileIsPlannedFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{Reconcile: l.returning(Result{RequeueAfter: 50 * 365 * 24 * time.Hour}, nil)})
		q.Enqueue("a", "event", PriorityNormal)
		time.Sleep(11 * time.Minute)
		l.want(t, "a event 0", "a timer 600")
	})
}

func TestAForgottenKeyIsNotReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		_, q := start(t, testConfig(), Options[string]{MinInterval: time.Second, Reconcile: l.returning(Result{RequeueAfter: time.Minute}, nil)})
		q.Enqueue("a", "event", PriorityNormal)
		synctest.Wait()
		q.Forget("a")
		time.Sleep(5 * time.Minute)
		l.want(t, "a event 0")
		if n := len(q.entries); n != 0 {
			t.Errorf("%d entries are kept of a key that was forgotten", n)
		}
	})
}

// A key that is at rest takes no memory.
func TestNothingIsRememberedOfAKeyAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, q := start(t, testConfig(), Options[string]{Reconcile: func(context.Context, string) (Result, error) { return Result{}, nil }})
		for n := range 100 {
			q.Enqueue(fmt.Sprint(n), "event", PriorityNormal)
		}
		synctest.Wait()
		if n := len(q.entries); n != 0 {
			t.Errorf("%d entries are kept of keys at rest", n)
		}
	})
}

// A webhook that hangs for the objects of one namespace must not occupy all workers.
func TestNoNamespaceTakesAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, hang := newLog(), make(chan struct{})
		defer close(hang)
		_, q := start(t, testConfig(), Options[string]{
			MaxInProgress: 8,
			Namespace:     func(key string) string { return strings.Split(key, "/")[0] },
			Reconcile: func(ctx context.Context, key string) (Result, error) {
				if strings.HasPrefix(key, "slow/") {
					<-hang
				}
				l.add(ctx, key)
				return Result{}, nil
			},
		})
		for n := range 20 {
			q.Enqueue(fmt.Sprintf("slow/%d", n), "event", PriorityNormal)
		}
		q.Enqueue("quick/1", "event", PriorityNormal)
		synctest.Wait()
		l.want(t, "quick/1 event 0")
	})
}

// A Controller that ends starts no reconcile, and cancels those that take too long.
func TestABacklogDoesNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		cfg := testConfig()
		cfg.DrainPeriod = 5 * time.Second
		c := newController(t, cfg)
		q := newQueue(c, Options[string]{Reconcile: func(ctx context.Context, key string) (Result, error) {
			l.add(ctx, "work")
			<-ctx.Done()
			return Result{}, ctx.Err()
		}})
		for n := range 10 {
			q.Enqueue(fmt.Sprint(n), "event", PriorityNormal)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		l.want(t, "work event 0", "work event 0")
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		l.want(t)
		if took := time.Since(l.began); took != cfg.DrainPeriod {
			t.Errorf("ended after %v, want %v", took, cfg.DrainPeriod)
		}
		if err := c.Run(t.Context()); !errors.Is(err, ErrStarted) {
			t.Errorf("a second run: %v, want %v", err, ErrStarted)
		}
	})
}

// Caches are filled in order, and nothing is reconciled before all are full.
func TestReadyOnceTheCachesAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newController(t, testConfig())
		l := newLog()
		slow := func(name string) (func(context.Context), func() bool) {
			var full atomic.Bool
			return func(ctx context.Context) {
				l.add(ctx, name)
				time.AfterFunc(time.Second, func() { full.Store(true) })
			}, full.Load
		}
		for _, name := range []string{"jobs", "pods"} {
			run, synced := slow(name)
			c.AddCache(run, synced)
		}
		q := newQueue(c, Options[string]{Reconcile: l.returning(Result{}, nil)})
		q.Enqueue("a", "event", PriorityNormal)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = c.Run(ctx) }()
		synctest.Wait()
		if err := c.Ready(); !errors.Is(err, ErrNotReady) {
			t.Errorf("ready = %v, want %v", err, ErrNotReady)
		}
		time.Sleep(5 * time.Second)
		if err := c.Ready(); err != nil {
			t.Errorf("ready = %v, want nil", err)
		}
		var order []string
		for _, line := range l.take() {
			order = append(order, strings.Fields(line)[0])
		}
		if diff := cmp.Diff([]string{"jobs", "pods", "a"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(*Config)
		want   string
	}{
		"no decider": {change: func(c *Config) { c.Decider = nil }, want: "no Decider: invalid configuration"},
		"no client":  {change: func(c *Config) { c.Client = nil }, want: "no Client: invalid configuration"},
		"no manager": {change: func(c *Config) { c.ManagedBy = "" }, want: "no ManagedBy: invalid configuration"},
		"negative workers": {
			change: func(c *Config) { c.Workers = -1 },
			want:   "negative Workers -1, want 0 or more: invalid configuration",
		},
		"negative time": {
			change: func(c *Config) { c.DrainPeriod = -1 },
			want:   "negative APIBackoff, MaxAPIBackoff, DecisionTimeout or DrainPeriod, want 0 or more: invalid configuration",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			tc.change(&cfg)
			if _, err := New(cfg, Identity{Component: "test"}); fmt.Sprint(err) != tc.want || !errors.Is(err, ErrConfig) {
				t.Errorf("got %q, want %q", err, tc.want)
			}
		})
	}
}

// engine is a Decider whose answers are set by the test.
type engine struct {
	Decider
	mu     sync.Mutex
	err    error
	answer func(*jobpolicyv1.DecideJobResponse)
}

func (e *engine) set(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func (e *engine) DecideJob(_ context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &jobpolicyv1.DecideJobResponse{RequestId: req.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if e.answer != nil {
		e.answer(d)
	}
	return d, e.err
}

func TestAnAnswerIsChecked(t *testing.T) {
	cases := map[string]struct {
		engine *engine
		want   error
		text   string
	}{
		"settled":             {engine: &engine{}},
		"away":                {engine: &engine{err: status.Error(codes.Unavailable, "away")}, want: ErrEngine},
		"cancelled":           {engine: &engine{err: status.Error(codes.Canceled, "stop")}, want: ErrEngine},
		"rejected":            {engine: &engine{err: status.Error(codes.InvalidArgument, "spec is odd")}, want: ErrRejected, text: "spec is odd"},
		"not known there":     {engine: &engine{err: status.Error(codes.Unimplemented, "no such call")}, want: ErrRejected, text: "no such call"},
		"of another request":  {engine: &engine{answer: func(d *jobpolicyv1.DecideJobResponse) { d.RequestId = "2" }}, want: ErrBadAnswer},
		"without disposition": {engine: &engine{answer: func(d *jobpolicyv1.DecideJobResponse) { d.Disposition = 0 }}, want: ErrBadAnswer},
		"unknown disposition": {engine: &engine{answer: func(d *jobpolicyv1.DecideJobResponse) { d.Disposition = 99 }}, want: ErrBadAnswer},
		"with a step that is to wait": {engine: &engine{answer: func(d *jobpolicyv1.DecideJobResponse) {
			d.Create = &jobpolicyv1.CreatePods{Count: 1}
		}}, want: ErrBadAnswer},
	}
	now := time.Now()
	req := &jobpolicyv1.DecideJobRequest{RequestId: "1", Now: timestamppb.New(now), Deferrals: []*jobpolicyv1.Deferral{
		{Step: jobpolicyv1.Step_STEP_CREATE_PODS, Until: timestamppb.New(now.Add(time.Minute))},
	}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newController(t, testConfig())
			if d, err := Try(t.Context(), c, tc.engine.DecideJob, req); (err == nil) != (tc.want == nil) || (d == nil) != (err != nil) {
				t.Errorf("tried: got %v and %v, want %v", d, err, tc.want)
			}
			d, err := Ask(t.Context(), c, tc.engine.DecideJob, req)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || (d == nil) != (err != nil) {
				t.Errorf("got %v and %v, want %v", d, err, tc.want)
			}
			if got := Rejection(err); got != tc.text {
				t.Errorf("rejection %q, want %q", got, tc.text)
			}
			if tc.engine.err != nil && status.Code(err) != status.Code(tc.engine.err) {
				t.Errorf("code %v, want %v", status.Code(err), status.Code(tc.engine.err))
			}
		})
	}
}

// An answer of a newer engine is refused by the path of what is unknown in it, unless
// the contract says that it may be ignored.
func TestUnknownsInAnAnswer(t *testing.T) {
	type response = jobpolicyv1.DecideJobResponse
	field := func(m proto.Message, number protowire.Number) {
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1))
	}
	refused := map[string]func(*response){
		"999":                         func(d *response) { field(d, 999) },
		"create.2000":                 func(d *response) { d.Create = &jobpolicyv1.CreatePods{}; field(d.Create, 2000) },
		"delete[0].77":                func(d *response) { d.Delete = []*jobpolicyv1.DeletePod{{}}; field(d.Delete[0], 77) },
		"status.start_time.77":        func(d *response) { d.Status.StartTime = timestamppb.Now(); field(d.Status.StartTime, 77) },
		"status.conditions[0].status": func(d *response) { d.Status.Conditions = []*jobpolicyv1.JobCondition{{Status: 9}} },
		"requirements[0]":             func(d *response) { d.Requirements = []jobpolicyv1.Requirement{99} },
		"events[0].type":              func(d *response) { d.Events = []*jobpolicyv1.JobEvent{{Type: 9}} },
		"delete_job.77":               func(d *response) { d.DeleteJob = &jobpolicyv1.DeleteJob{}; field(d.DeleteJob, 77) },
	}
	ask := func(t *testing.T, change func(*response)) error {
		t.Helper()
		c := newController(t, testConfig())
		newer := &engine{answer: func(d *response) { d.Status = &jobpolicyv1.JobStatus{}; change(d) }}
		_, err := Ask(t.Context(), c, newer.DecideJob, &jobpolicyv1.DecideJobRequest{RequestId: "1"})
		return err
	}
	for path, change := range refused {
		if err := ask(t, change); !errors.Is(err, ErrBadAnswer) || !strings.HasPrefix(err.Error(), path+" ") {
			t.Errorf("an unknown at %s: error %v, want ErrBadAnswer that names it", path, err)
		}
	}
	ignored := map[string]func(*response){
		"fields with numbers for that": func(d *response) { field(d, 1000); field(d.Status, 1999) },
		"all in the explanation": func(d *response) {
			d.Explanation = &jobpolicyv1.Explanation{DecidingRule: 9999}
			field(d.Explanation, 77)
		},
		"when to ask again":       func(d *response) { d.FollowUp = 99 },
		"why a pod is deleted":    func(d *response) { d.Delete = []*jobpolicyv1.DeletePod{{Reason: 99}} },
		"why a Job is deleted":    func(d *response) { d.DeleteJob = &jobpolicyv1.DeleteJob{Reason: 99} },
		"the rule of the verdict": func(d *response) { d.Verdict = &jobpolicyv1.Verdict{Rule: 9999} },
	}
	for name, change := range ignored {
		if err := ask(t, change); err != nil {
			t.Errorf("%s: error %v, want it ignored", name, err)
		}
	}
}

// When the engine answers again, keys whose backoff it caused are reconciled at once.
func TestKeysAreReconciledAtOnceWhenTheEngineIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		var c *Controller
		e := &engine{err: status.Error(codes.Unavailable, "away")}
		var q *Queue[string]
		cfg := testConfig()
		cfg.Workers = 1 // So b ends before a begins.
		c, q = start(t, cfg, Options[string]{EventsWait: true, Reconcile: func(ctx context.Context, key string) (Result, error) {
			if key == "odd" {
				l.add(ctx, key)
				return Result{}, errors.New("another reason")
			}
			_, err := Ask(ctx, c, e.DecideJob, &jobpolicyv1.DecideJobRequest{RequestId: key})
			if err == nil {
				l.add(ctx, key)
			}
			return Result{}, err
		}})
		q.Enqueue("a", "event", PriorityNormal)
		q.Enqueue("odd", "event", PriorityNormal)
		time.Sleep(10 * time.Second)
		l.take()
		e.set(nil)
		q.Enqueue("b", "event", PriorityNormal)
		synctest.Wait()
		l.want(t, "b event 10", "a retry 10")
	})
}

// One key at a time keeps asking for an engine that cannot be reached, so its return is noticed soon also when there
// is no event. An engine that answers with an error is not asked more often.
func TestTheEnginesReturnIsNoticedWithoutAnEvent(t *testing.T) {
	for _, tc := range []struct {
		code codes.Code
		// asked is how often it is asked at most in ten minutes about three Jobs.
		asked int
		back  bool
	}{
		{code: codes.Unavailable, asked: 350, back: true},
		{code: codes.DeadlineExceeded, asked: 60},
	} {
		t.Run(tc.code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLog()
				var c *Controller
				var asked atomic.Int32
				e := &engine{err: status.Error(tc.code, "away")}
				cfg := testConfig()
				cfg.Workers, cfg.MaxAPIBackoff = 1, time.Minute
				c, q := start(t, cfg, Options[string]{Reconcile: func(ctx context.Context, key string) (Result, error) {
					asked.Add(1)
					_, err := Ask(ctx, c, e.DecideJob, &jobpolicyv1.DecideJobRequest{RequestId: key})
					if err == nil {
						l.add(ctx, key)
					}
					return Result{}, err
				}})
				for _, key := range []string{"a", "b", "c"} {
					q.Enqueue(key, "event", PriorityNormal)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := int(asked.Load()); n > tc.asked {
					t.Errorf("the engine was asked %d times, want %d at most", n, tc.asked)
				}
				q.Forget("a") // It asked, and another key takes its place.
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				e.set(nil)
				time.Sleep(engineAskedAfter)
				synctest.Wait()
				all := strings.Join(l.take(), "; ")
				if both := strings.Contains(all, "b retry") && strings.Contains(all, "c retry"); both != tc.back {
					t.Errorf("decided on right after the engine was back: %q, want both keys: %v", all, tc.back)
				}
			})
		})
	}
}

// Keys that wait for a slot count as waiting, and not as being worked on.
func TestTheMetricsOfAQueueTellWaitingFromWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, registry := testConfig(), prometheus.NewRegistry()
		cfg.Registerer = registry
		c := newController(t, cfg)
		q := newQueue(c, Options[string]{Name: telemetry.JobQueue, Reconcile: func(context.Context, string) (Result, error) {
			time.Sleep(10 * time.Second)
			return Result{}, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			q.Enqueue(key, "event", PriorityNormal)
		}
		expect := func(at time.Duration, want string) {
			t.Helper()
			time.Sleep(at)
			synctest.Wait()
			const depth, unfinished, longest = "workqueue_depth", "workqueue_unfinished_work_seconds", "workqueue_longest_running_processor_seconds"
			const waited, worked = "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"
			var got []string
			families, err := registry.Gather()
			if err != nil {
				t.Error(err)
			}
			for _, f := range families {
				m := f.GetMetric()[0]
				switch f.GetName() {
				case depth, unfinished, longest:
					got = append(got, fmt.Sprint(f.GetName(), " ", m.GetGauge().GetValue()))
				case waited, worked:
					got = append(got, fmt.Sprint(f.GetName(), " ", m.GetHistogram().GetSampleCount(), " in ", m.GetHistogram().GetSampleSum()))
				}
			}
			if diff := cmp.Diff(strings.Split(want, "; "), got); diff != "" {
				t.Errorf("after %s more (-want +got):\n%s", at, diff)
			}
		}
		expect(5*time.Second, "workqueue_depth 3; workqueue_longest_running_processor_seconds 5; workqueue_queue_duration_seconds 2 in 0; "+
			"workqueue_unfinished_work_seconds 10; workqueue_work_duration_seconds 0 in 0")
		expect(10*time.Second, "workqueue_depth 1; workqueue_longest_running_processor_seconds 5; workqueue_queue_duration_seconds 4 in 20; "+
			"workqueue_unfinished_work_seconds 10; workqueue_work_duration_seconds 2 in 20")
		expect(20*time.Second, "workqueue_depth 0; workqueue_longest_running_processor_seconds 0; workqueue_queue_duration_seconds 5 in 40; "+
			"workqueue_unfinished_work_seconds 0; workqueue_work_duration_seconds 5 in 50")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

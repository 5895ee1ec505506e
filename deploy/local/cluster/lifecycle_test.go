package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func TestStagesStartInOrderAndStopInReverse(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"}, []string{"b-serve"}, []string{"c-serve"})
	f.mustBegin(t)
	must.Succeed(t, f.Stop(t.Context()))
	must.Equal(t, "order of becoming ready", []string{"a-serve", "b-serve", "c-serve"}, f.order(Ready))
	must.Equal(t, "order of stopping", []string{"c-serve", "b-serve", "a-serve"}, f.order(Stopped))
	if !f.noneRuns() {
		t.Error("a component still runs after Stop")
	}
	if f.Err() != nil {
		t.Errorf("stopping counts as a failure: %v", f.Err())
	}
}

func TestStateDirectoryAfterStop(t *testing.T) {
	cases := map[string]struct {
		opts     Options
		fails    bool
		wantKept bool
	}{
		"is deleted":                              {},
		"stays with Keep":                         {opts: Options{Keep: true}, wantKept: true},
		"stays after a failure, for its logs":     {fails: true, wantKept: true},
		"stays after a failure with Keep as well": {opts: Options{Keep: true}, fails: true, wantKept: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t, tc.opts, []string{"a-serve"})
			f.mustBegin(t)
			if tc.fails {
				f.fail(errors.New("broken"))
			}
			must.Succeed(t, f.Stop(t.Context()))
			_, err := os.Stat(f.StateDir())
			if kept := err == nil; kept != tc.wantKept {
				t.Errorf("kept is %t, want %t", kept, tc.wantKept)
			}
		})
	}
}

func TestEndThatNobodyAskedForIsAFailure(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"}, []string{"b-serve"})
	f.mustBegin(t)
	if f.Err() != nil {
		t.Fatalf("failed before anything happened: %v", f.Err())
	}
	comp := f.mustComponent(t, "b-serve")
	// The process is killed from outside, as the kernel does when memory is short.
	must.Succeed(t, syscall.Kill(comp.current.Load().proc.PID(), syscall.SIGKILL))
	failure := f.Wait(t.Context())
	if failure == nil {
		t.Fatal("Wait reports no failure")
	}
	for _, want := range []string{"b-serve", "signal: killed", f.LogPath("b-serve"), "serving"} {
		if !strings.Contains(failure.Error(), want) {
			t.Errorf("the failure does not say %q: %v", want, failure)
		}
	}
	select {
	case <-f.Failed():
	default:
		t.Error("Failed is not closed")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"})
	f.mustBegin(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Wait(ctx); err != nil {
		t.Errorf("got %v, want no failure", err)
	}
}

func TestEndThatWasAskedForIsNoFailure(t *testing.T) {
	cases := map[string]struct {
		end       func(t *testing.T, f *fakeCluster) (ExitState, error)
		wantState ExitState
	}{
		"StopComponent": {
			end: func(t *testing.T, f *fakeCluster) (ExitState, error) {
				return f.StopComponent(context.Background(), "b-serve")
			},
			wantState: ExitState{Code: -1, Signal: syscall.SIGTERM},
		},
		"Kill": {
			end: func(t *testing.T, f *fakeCluster) (ExitState, error) {
				err := f.Kill("b-serve")
				return f.lastState(t, "b-serve"), err
			},
			wantState: ExitState{Code: -1, Signal: syscall.SIGKILL},
		},
		"Signal with a signal that ends processes": {
			end: func(t *testing.T, f *fakeCluster) (ExitState, error) {
				err := f.Signal("b-serve", syscall.SIGQUIT)
				return f.lastState(t, "b-serve"), err
			},
			wantState: ExitState{Code: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t, Options{}, []string{"a-serve"}, []string{"b-serve"})
			f.mustBegin(t)
			state, err := tc.end(t, f)
			must.Succeed(t, err)
			must.Equal(t, "exit state", tc.wantState, state)
			address := f.ports.address("b-serve")
			must.Succeed(t, f.StartComponent(t.Context(), "b-serve"))
			must.Equal(t, "address after the restart", address, f.ports.address("b-serve"))
			if f.Err() != nil {
				t.Errorf("counts as a failure: %v", f.Err())
			}
		})
	}
}

// lastState waits for the end of a component's process.
func (f *fakeCluster) lastState(t *testing.T, name string) ExitState {
	proc := f.mustComponent(t, name).current.Load().proc
	<-proc.Exited()
	return proc.ExitState()
}

func TestExtraArgsHoldFromTheNextStartOn(t *testing.T) {
	f := newFakeCluster(t, Options{ExtraArgs: map[string][]string{"a-serve": {"--mode=old"}}}, []string{"a-serve"})
	f.mustBegin(t)
	must.Succeed(t, f.SetExtraArgs("a-serve", "--mode=new"))
	comp := f.mustComponent(t, "a-serve")
	if log := comp.current.Load().proc.Tail(1); !strings.Contains(log, "--mode=old") {
		t.Errorf("the first start was with %q, want --mode=old", log)
	}
	must.Succeed(t, f.Kill("a-serve"))
	must.Succeed(t, f.StartComponent(t.Context(), "a-serve"))
	if log := comp.current.Load().proc.Tail(1); !strings.Contains(log, "--mode=new") || strings.Contains(log, "--mode=old") {
		t.Errorf("the second start was with %q, want --mode=new alone", log)
	}
	if err := f.SetExtraArgs("nobody"); !errors.Is(err, ErrUnknownComponent) {
		t.Errorf("arguments for a component that is not there: %v, want %v", err, ErrUnknownComponent)
	}
}

func TestPausedComponentIsNoFailure(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"})
	f.mustBegin(t)
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		must.Succeed(t, f.Signal("a-serve", sig))
	}
	comp := f.mustComponent(t, "a-serve")
	if comp.current.Load().told.Load() {
		t.Error("a later crash would go unnoticed")
	}
}

func TestPIDIsThatOfTheCurrentProcess(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"})
	f.mustBegin(t)
	first, err := f.PID("a-serve")
	must.Succeed(t, err)
	if err := syscall.Kill(first, 0); err != nil {
		t.Errorf("no process has the id %d: %v", first, err)
	}
	must.Succeed(t, f.Kill("a-serve"))
	if _, err := f.PID("a-serve"); !errors.Is(err, errNotRunning) {
		t.Errorf("after its end: %v, want %v", err, errNotRunning)
	}
	must.Succeed(t, f.StartComponent(t.Context(), "a-serve"))
	if second, err := f.PID("a-serve"); err != nil || second == first {
		t.Errorf("after a restart: %d, %v; before it was %d", second, err, first)
	}
}

func TestOperationsOnTheWrongComponent(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve", "b-serve"})
	f.mustBegin(t)
	must.Succeed(t, f.Kill("b-serve"))
	stop := func(name string) error {
		_, err := f.StopComponent(t.Context(), name)
		return err
	}
	cases := map[string]struct {
		got, want error
	}{
		"starting one that runs":           {f.StartComponent(t.Context(), "a-serve"), errRunning},
		"starting one that does not exist": {f.StartComponent(t.Context(), "x"), ErrUnknownComponent},
		"stopping one that does not run":   {stop("b-serve"), errNotRunning},
		"stopping one that does not exist": {stop("x"), ErrUnknownComponent},
		"killing one that does not run":    {f.Kill("b-serve"), errNotRunning},
		"signalling one that does not run": {f.Signal("b-serve", syscall.SIGCONT), errNotRunning},
		"signalling one that is not there": {f.Signal("x", syscall.SIGCONT), ErrUnknownComponent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(tc.got, tc.want) {
				t.Errorf("got %v, want %v", tc.got, tc.want)
			}
		})
	}
}

func TestStartFailures(t *testing.T) {
	cases := map[string]struct {
		component string
		timeout   time.Duration
		want      []string
	}{
		"a component that ends": {
			component: "b-crash",
			timeout:   time.Minute,
			want:      []string{"b-crash ended unexpectedly", "exit status 3", "the disk is on fire", "b-crash.log"},
		},
		"a component that is never ready": {
			component: "b-idle",
			timeout:   5 * time.Second,
			want:      []string{"b-idle is not ready after 5s", "nobody listens", "thinking", "b-idle.log"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t, Options{StartTimeout: tc.timeout}, []string{"a-serve"}, []string{tc.component})
			err := f.begin(t.Context())
			if err == nil {
				t.Fatal("started")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-idle"})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no patience")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if err := f.begin(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestOneFailureEndsTheWholeStage(t *testing.T) {
	f := newFakeCluster(t, Options{StartTimeout: time.Hour}, []string{"a-idle", "b-crash"})
	err := f.begin(t.Context())
	if err == nil || !strings.Contains(err.Error(), "b-crash") {
		t.Errorf("got %v, want the failure of b-crash", err)
	}
}

func TestPortTakenBetweenChoosingAndListening(t *testing.T) {
	f := newFakeCluster(t, Options{}, []string{"a-serve"})
	comp := f.mustComponent(t, "a-serve")
	var thieves []net.Listener
	comp.prepare = func() error {
		if len(thieves) == 2 {
			return nil
		}
		thief, err := net.Listen("tcp", f.ports.address("a-serve"))
		thieves = append(thieves, thief)
		return err
	}
	// The process that took the port also answers, so only the component's own port shows that
	// it is ready.
	comp.ready = func(context.Context) error {
		if strings.Contains(comp.current.Load().proc.Tail(1), "listening") {
			return nil
		}
		return errors.New("not listening")
	}
	f.mustBegin(t)
	for _, thief := range thieves {
		if thief.Addr().String() == f.ports.address("a-serve") {
			t.Errorf("the component kept the stolen address %s", thief.Addr())
		}
		thief.Close()
	}
	if got := len(f.order(Starting)); got != 3 {
		t.Errorf("started %d times, want 3", got)
	}
}

func TestProgressWhileWaiting(t *testing.T) {
	f := newFakeCluster(t, Options{StartTimeout: 5 * time.Second}, []string{"a-idle"})
	if err := f.begin(t.Context()); err == nil {
		t.Fatal("started")
	}
	at := slices.IndexFunc(f.steps, func(p Progress) bool { return p.State == Waiting })
	if at < 0 {
		t.Fatal("no report while waiting")
	}
	must.Equal(t, "reason", "nobody listens", f.steps[at].Detail)
}

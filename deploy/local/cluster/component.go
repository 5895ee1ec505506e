package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"jobpolicy.dev/deploy/local/internal/supervise"
)

const (
	probeInterval = 100 * time.Millisecond
	// waitingInterval is the longest time between two reports that a component is
	// still not ready.
	waitingInterval = 5 * time.Second
	// stopGrace is how long a component may take to end after SIGTERM. The API
	// server drains its requests first.
	stopGrace = 30 * time.Second
	// portAttempts is how often a component is started with new ports because
	// another process took one between choosing and listening.
	portAttempts = 4
	// tailLines is how much of a log an error shows.
	tailLines = 25
)

// ErrUnknownComponent is wrapped by the methods that take a component's name,
// for a name that this control plane has no component of.
var ErrUnknownComponent = errors.New("no such component in this control plane")

// component is one child process and how to run it.
type component struct {
	name string
	path string
	// subcommand comes before args, if it is not empty. It and path may be changed while mu
	// is held.
	subcommand string
	// listeners are the names of the ports that it listens on.
	listeners []string
	// prepare writes files that depend on ports when these were chosen, or is
	// nil.
	prepare func() error
	args    func() []string
	// extraArgs follow args. They may be changed while mu is held.
	extraArgs []string
	env       []string
	logFile   string
	// inside is where it runs; nil means on the machine itself.
	inside *enclosure
	// namespaces are the new ones that it is the first process of.
	namespaces uintptr
	ready      probe
	// afterFirst runs once, when it is ready for the first time, or is nil.
	afterFirst func(ctx context.Context) error

	mu      sync.Mutex // held while it starts or stops
	current atomic.Pointer[run]
}

// run is one life of a component.
type run struct {
	proc *supervise.Process
	// told is set before the process is ended on purpose. If the process ends and told is
	// not set, the control plane has failed.
	told atomic.Bool
}

func (c *component) running() bool {
	r := c.current.Load()
	return r != nil && r.proc.Running()
}

// commandLine returns the arguments of the next start.
func (c *component) commandLine() []string {
	args := slices.Concat(c.args(), c.extraArgs)
	if c.subcommand == "" {
		return args
	}
	return slices.Insert(args, 0, c.subcommand)
}

// launch starts the process; nothing is known yet about its readiness.
func (c *component) launch() (*run, error) {
	proc, err := supervise.Start(supervise.Command{
		Path:    c.path,
		Args:    c.commandLine(),
		Env:     c.env,
		LogFile: c.logFile,

		Thread:     c.inside.startThread(),
		Cloneflags: c.namespaces,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	r := &run{proc: proc}
	c.current.Store(r)
	return r, nil
}

// endError describes an unexpected end.
func (c *component) endError(r *run) error {
	return fmt.Errorf("%s ended unexpectedly: %s%s", c.name, r.proc.ExitState(), c.logNote(r))
}

// logNote shows where the log is and how it ends.
func (c *component) logNote(r *run) string {
	tail := r.proc.Tail(tailLines)
	if tail == "" {
		return fmt.Sprintf("; its log %s is empty", c.logFile)
	}
	return fmt.Sprintf("; its log %s ends with:\n  %s", c.logFile, strings.ReplaceAll(tail, "\n", "\n  "))
}

// lostPort reports whether the last process ended because a port was taken.
func (c *component) lostPort() bool {
	r := c.current.Load()
	return r != nil && !r.proc.Running() && strings.Contains(r.proc.Tail(tailLines), syscall.EADDRINUSE.Error())
}

// await asks until the component is ready. It gives up when the process ends,
// when timeout passes, or when ctx ends; report is called now and then.
func (c *component) await(ctx context.Context, r *run, timeout time.Duration, report func(State, string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := cancelWhenClosed(r.proc.Exited(), cancel)
	defer stop()

	err := poll(ctx, timeout, c.ready, report)
	if err == nil {
		return nil
	}
	if !r.proc.Running() && !r.told.Load() {
		return c.endError(r)
	}
	var late *timeoutError
	if errors.As(err, &late) {
		return fmt.Errorf("%s %w%s", c.name, err, c.logNote(r))
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

// cancelWhenClosed calls cancel when ch is closed; stop ends the watch.
func cancelWhenClosed(ch <-chan struct{}, cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-ch:
			cancel()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// timeoutError: a probe did not succeed in time; last is its last answer.
type timeoutError struct {
	after time.Duration
	last  error
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("is not ready after %s: %v", e.after, e.last)
}

func (e *timeoutError) Unwrap() error { return e.last }

// poll asks until ready says yes, timeout passes (a *timeoutError), or ctx ends.
func poll(ctx context.Context, timeout time.Duration, ready probe, report func(State, string)) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	waiting := time.NewTicker(min(waitingInterval, timeout/4))
	defer waiting.Stop()
	ask := time.NewTicker(probeInterval)
	defer ask.Stop()
	for {
		last := ready(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return &timeoutError{after: timeout, last: last}
		case <-waiting.C:
			report(Waiting, last.Error())
		case <-ask.C:
		}
	}
}

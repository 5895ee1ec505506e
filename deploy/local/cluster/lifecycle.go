package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"jobpolicy.dev/deploy/local/internal/supervise"
)

// ExitState says how a component's process ended: Code is its exit code, or -1
// when a signal killed it, which Signal then names.
type ExitState = supervise.ExitState

// errNotRunning and errRunning: a component is not in the state that an
// operation needs.
var (
	errNotRunning = errors.New("is not running")
	errRunning    = errors.New("is already running")
)

// Signal sends sig to a component. A signal that ends processes counts as asked
// for: the component's end is then no failure.
func (c *Cluster) Signal(name string, sig syscall.Signal) error {
	r, err := c.runOf(name)
	if err != nil {
		return err
	}
	if endsProcesses(sig) {
		r.told.Store(true)
	}
	if err := r.proc.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", name, err)
	}
	return nil
}

func endsProcesses(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGABRT:
		return true
	}
	return false
}

// PID returns the process id of a running component, for example to measure its memory and
// CPU time.
func (c *Cluster) PID(name string) (int, error) {
	r, err := c.runOf(name)
	if err != nil {
		return 0, err
	}
	return r.proc.PID(), nil
}

// Kill ends a component with SIGKILL and waits for it.
func (c *Cluster) Kill(name string) error {
	r, err := c.runOf(name)
	if err != nil {
		return err
	}
	r.told.Store(true)
	r.proc.Kill()
	return nil
}

// StopComponent sends SIGTERM to a component and waits for its end, however
// long that takes. When ctx ends first, the component may still be running.
func (c *Cluster) StopComponent(ctx context.Context, name string) (ExitState, error) {
	r, err := c.runOf(name)
	if err != nil {
		return ExitState{}, err
	}
	r.told.Store(true)
	if err := r.proc.Signal(syscall.SIGTERM); err != nil && r.proc.Running() {
		return ExitState{}, fmt.Errorf("stop %s: %w", name, err)
	}
	select {
	case <-r.proc.Exited():
		return r.proc.ExitState(), nil
	case <-ctx.Done():
		return ExitState{}, fmt.Errorf("stop %s: %w", name, context.Cause(ctx))
	}
}

// SetExtraArgs replaces a component's [Options.ExtraArgs]. Its next start uses
// them; a process that runs keeps what it was started with.
func (c *Cluster) SetExtraArgs(name string, args ...string) error {
	comp, err := c.component(name)
	if err != nil {
		return err
	}
	comp.mu.Lock()
	defer comp.mu.Unlock()
	comp.extraArgs = slices.Clone(args)
	return nil
}

// SetKubernetesDir replaces [Options.KubernetesDir] for the next start of each server of
// Kubernetes; a process that runs stays what it is. Name controllers that both versions know
// ([Options.ControllerManagerControllers]).
func (c *Cluster) SetKubernetesDir(dir string) {
	for _, name := range kubernetesServers {
		comp, err := c.component(name)
		if errors.Is(err, ErrUnknownComponent) {
			continue // There may be no scheduler.
		}
		comp.mu.Lock()
		comp.path, comp.subcommand = c.kubernetesProgram(dir, name)
		comp.mu.Unlock()
	}
}

// StartComponent starts a component that has ended, with the arguments and
// ports that it had, unless [Cluster.SetExtraArgs] changed the arguments, and
// waits until it is ready. When it does not become ready
// it is killed.
func (c *Cluster) StartComponent(ctx context.Context, name string) error {
	comp, err := c.component(name)
	if err != nil {
		return err
	}
	comp.mu.Lock()
	defer comp.mu.Unlock()
	if comp.running() {
		return fmt.Errorf("start %s: %w", name, errRunning)
	}
	if err := c.startComponent(ctx, comp); err != nil {
		comp.kill()
		return err
	}
	return nil
}

func (c *component) kill() {
	if r := c.current.Load(); r != nil {
		r.told.Store(true)
		r.proc.Kill()
	}
}

func (c *Cluster) component(name string) (*component, error) {
	for _, stage := range c.stages {
		for _, comp := range stage {
			if comp.name == name {
				return comp, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: %w", name, ErrUnknownComponent)
}

// runOf returns the current life of a component that is running.
func (c *Cluster) runOf(name string) (*run, error) {
	comp, err := c.component(name)
	if err != nil {
		return nil, err
	}
	r := comp.current.Load()
	if r == nil || !r.proc.Running() {
		return nil, fmt.Errorf("%s %w", name, errNotRunning)
	}
	return r, nil
}

// Stop ends every component, those that were started last first: SIGTERM, and
// SIGKILL for one that takes longer than 30 seconds or when ctx ends. Then it
// deletes the state directory, unless that is to be kept, or a component had
// failed: its log may be needed. Further calls return the first one's result.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() {
		c.stopProcesses(ctx)
		if c.stopErr = c.inside.remove(); c.stopErr != nil {
			c.fail(c.stopErr)
		}
		switch {
		case c.opts.Keep:
			c.stopErr = errors.Join(c.stopErr, c.dir.Close())
		case c.Err() != nil:
			c.stopErr = errors.Join(c.stopErr, c.dir.Leave())
		default:
			c.stopErr = c.dir.Remove()
		}
	})
	return c.stopErr
}

// stopProcesses marks every run before it stops the first: a component that ends because
// another one is gone is not a failure.
func (c *Cluster) stopProcesses(ctx context.Context) {
	for _, stage := range c.stages {
		for _, comp := range stage {
			if r := comp.current.Load(); r != nil {
				r.told.Store(true)
			}
		}
	}
	for i := len(c.stages) - 1; i >= 0; i-- {
		var group sync.WaitGroup
		for _, comp := range c.stages[i] {
			group.Go(func() { c.stopOne(ctx, comp) })
		}
		group.Wait()
	}
}

func (c *Cluster) stopOne(ctx context.Context, comp *component) {
	comp.mu.Lock()
	defer comp.mu.Unlock()
	r := comp.current.Load()
	if r == nil || !r.proc.Running() {
		return
	}
	r.told.Store(true)
	begin := time.Now()
	c.report(Progress{Component: comp.name, State: Stopping})
	state := Stopped
	if _, killed := r.proc.Stop(ctx, stopGrace); killed {
		state = Killed
	}
	c.report(Progress{Component: comp.name, State: state, Elapsed: time.Since(begin)})
}

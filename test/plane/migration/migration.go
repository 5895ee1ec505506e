// Package migration moves Jobs that are in flight from one controller to another
// and back, kills both in between, and checks what became of every pod.
package migration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Side is a controller of Jobs that can be switched on and off. Only one side is
// on at a time.
type Side struct {
	Name string
	// Start switches it on, and returns when it acts.
	Start func(context.Context) error
	// Stop switches it off as a person does; Kill is SIGKILL. Neither returns
	// before it has ended.
	Stop, Kill func(context.Context) error
}

// Migration is what to play.
type Migration struct {
	Client    kubernetes.Interface
	Namespace string
	// Image has a shell.
	Image string
	// Every is the least time between the creations of two Jobs.
	Every time.Duration
	// From is on when the migration begins, and when it ends, unless Switches is
	// odd.
	From, To Side
	// Watch is called while From runs Jobs, before the first switch. nil: nothing.
	Watch func(context.Context) error
	// Switches is how often the Jobs change sides.
	Switches int
	// Tell receives a line for each thing that is done.
	Tell func(format string, args ...any)
}

// stay is how long a side acts before the next thing happens to it: longer than
// a pod of the load runs, shorter than a Job.
const stay = 4 * time.Second

// underWay is how many Jobs change sides at most.
const underWay = 20

// Play switches and kills while Jobs are created, lets the last side finish
// them, and returns how many Jobs there were and what is wrong with any.
func (m Migration) Play(ctx context.Context) (jobs int, err error) {
	load, err := StartLoad(ctx, m.Client, m.Namespace, LoadOptions{
		Image: m.Image, Every: m.Every, Unfinished: underWay,
	})
	if err != nil {
		return 0, err
	}
	if m.Watch != nil {
		if err := m.Watch(ctx); err != nil {
			return 0, fmt.Errorf("while %s runs Jobs: %w", m.From.Name, err)
		}
	}
	on, off := m.From, m.To
	for i := range m.Switches {
		if err := m.leave(ctx, on, i); err != nil {
			return 0, fmt.Errorf("switch %d, from %s: %w", i+1, on.Name, err)
		}
		on, off = off, on
		m.Tell("switch %d: start %s", i+1, on.Name)
		if err := on.Start(ctx); err != nil {
			return 0, fmt.Errorf("switch %d, start %s: %w", i+1, on.Name, err)
		}
	}
	m.Tell("%s finishes the Jobs", on.Name)
	return load.Finish(ctx)
}

// leave ends the side that is on. Of four switches two kill it and start it
// again in the middle, and two end it by a kill and not gently.
func (m Migration) leave(ctx context.Context, on Side, i int) error {
	if i%4 >= 2 {
		if err := sleep(ctx, stay/2); err != nil {
			return err
		}
		m.Tell("switch %d: kill %s and start it again", i+1, on.Name)
		if err := on.Kill(ctx); err != nil {
			return err
		}
		if err := on.Start(ctx); err != nil {
			return err
		}
	}
	if err := sleep(ctx, stay); err != nil {
		return err
	}
	if i%2 == 1 {
		m.Tell("switch %d: kill %s", i+1, on.Name)
		return on.Kill(ctx)
	}
	m.Tell("switch %d: stop %s", i+1, on.Name)
	return on.Stop(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

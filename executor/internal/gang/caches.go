package gang

import (
	"context"
	"errors"
	"sync"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
)

// servedPeriod is how often Run looks whether the API server serves gangs by now.
const servedPeriod = time.Second

// errNotFilled: the caches do not show yet which Workloads and PodGroups there are.
var errNotFilled = errors.New("the Workloads and PodGroups are not read yet")

// Run fills the caches and keeps them up to date until ctx ends. While the API server does not serve
// gangs, Run waits until it does.
func (g *Gangs) Run(ctx context.Context) {
	served := func(context.Context) (bool, error) { return !g.cfg.Server.GangsAbsent(), nil }
	if utilwait.PollUntilContextCancel(ctx, servedPeriod, true, served) != nil {
		return // ctx has ended.
	}
	var running sync.WaitGroup
	for _, set := range g.Informers() {
		running.Go(func() { set.Run(ctx) })
	}
	running.Wait()
}

// Settled reports whether the caches are filled, or cannot be filled because the API server does not
// serve gangs. Jobs need not wait for the caches any longer: only pods of gangs do.
func (g *Gangs) Settled() bool { return g.cfg.Server.GangsAbsent() || g.filled() }

func (g *Gangs) filled() bool {
	for _, set := range g.Informers() {
		if !set.HasSynced() {
			return false
		}
	}
	return true
}

// usable returns an error while nothing may be concluded from the caches. Without a Server they are
// filled before any Job is reconciled.
func (g *Gangs) usable(ctx context.Context) error {
	if g.cfg.Server == nil || g.filled() {
		return nil
	}
	if err := g.cfg.Server.Ready(ctx); err != nil {
		return err
	}
	return errNotFilled
}

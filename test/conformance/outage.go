package conformance

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"jobpolicy.dev/deploy/local/cluster"
)

// An outage is a side's controller being down. Cases share it: it begins with
// the first that asks for it, and the controller is started again when the last
// has let go.
type outage struct {
	plane *cluster.Cluster
	// components make up the side's controller.
	components []string

	mu       sync.Mutex
	changed  *sync.Cond
	holders  int
	starting bool
	down     map[string]bool
	upSince  time.Time
	count    int
}

func newOutage(plane *cluster.Cluster, components ...string) *outage {
	o := &outage{plane: plane, components: components, down: map[string]bool{}, upSince: time.Now()}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// begin kills, with SIGKILL, one component by its place among the side's, or
// all of them if there are fewer.
func (o *outage) begin(which int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.starting {
		o.changed.Wait()
	}
	o.holders++
	name := o.components[which%len(o.components)]
	if o.down[name] {
		return nil
	}
	o.down[name] = true
	o.count++
	return o.plane.Kill(name)
}

// end starts what is down, unless another case still needs it so.
func (o *outage) end(ctx context.Context) error {
	o.mu.Lock()
	o.holders--
	if o.holders > 0 {
		o.mu.Unlock()
		return nil
	}
	o.starting = true
	down := slices.Collect(maps.Keys(o.down))
	o.mu.Unlock()
	// At the same time: the executor is ready only when its engine is.
	errs := make([]error, len(down))
	var starts sync.WaitGroup
	for i, name := range down {
		starts.Go(func() { errs[i] = o.plane.StartComponent(ctx, name) })
	}
	starts.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.starting, o.upSince = false, time.Now()
	clear(o.down)
	o.changed.Broadcast()
	return errors.Join(errs...)
}

// since says when the controller was started last, and whether it is up.
func (o *outage) since() (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.upSince, len(o.down) == 0
}

// await waits until the controller has been up for a while.
func (o *outage) await(long time.Duration) {
	for {
		if since, up := o.since(); up && time.Since(since) >= long {
			return
		}
		time.Sleep(pollPeriod)
	}
}

// disturb restarts the controller at random moments until ctx ends.
func (o *outage) disturb(ctx context.Context, from, to time.Duration) error {
	luck := seeded(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(from + time.Duration(luck.Int64N(int64(to-from)))):
		}
		err := o.begin(luck.IntN(len(o.components)))
		time.Sleep(time.Duration(luck.Int64N(int64(time.Second))))
		if err := errors.Join(err, o.end(context.WithoutCancel(ctx))); err != nil {
			return err
		}
	}
}

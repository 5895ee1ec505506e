package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotLeading says that a fenced client refuses a write because this replica does not
// lead.
var ErrNotLeading = errors.New("not the leader")

// A tenure is the time for which a replica is certain to hold the lease. Other replicas
// may believe that it holds the lease for longer, but never for a shorter time.
type tenure struct {
	duration time.Duration
	wall     func() time.Time
	lost     context.Context // Done when another holder was seen.
	lose     context.CancelFunc

	mu      sync.Mutex
	renewed *instant // When the last successful renewal was sent. nil: never, or the lease was given up.
	holder  string   // Who holds the lease after us; "nobody" if it was found free.
}

// An instant is a moment on two clocks. The monotonic clock stops while the machine is
// suspended. The wall clock can be set.
type instant struct{ monotonic, wall time.Time }

func newTenure(duration time.Duration, wall func() time.Time) *tenure {
	t := &tenure{duration: duration, wall: wall}
	t.lost, t.lose = context.WithCancel(context.Background())
	return t
}

func (t *tenure) now() instant {
	return instant{monotonic: time.Now(), wall: t.wall()}
}

// since is the time that has passed, by the clock on which more has passed.
func (t *tenure) since(i instant) time.Duration {
	now := t.now()
	return max(now.monotonic.Sub(i.monotonic), now.wall.Sub(i.wall))
}

// check is nil while this replica is certain that nobody else leads.
func (t *tenure) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.holder != "":
		return fmt.Errorf("the lease was taken by %s: %w", t.holder, ErrNotLeading)
	case t.renewed == nil:
		return fmt.Errorf("the lease is not held: %w", ErrNotLeading)
	}
	if passed := t.since(*t.renewed); passed >= t.duration {
		return fmt.Errorf("the lease was renewed %s ago, it lasts %s: %w", passed, t.duration, ErrNotLeading)
	}
	return nil
}

// renewedAt records that a renewal that was sent at that time has succeeded.
func (t *tenure) renewedAt(sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = &sent
}

// seen records who holds the lease. If another replica held it after this one, the tenure
// is over, even if that replica has gone: it may have written since.
func (t *tenure) seen(holder, self string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if holder == self || t.renewed == nil || t.holder != "" {
		return
	}
	if t.holder = holder; holder == "" {
		t.holder = "nobody"
	}
	t.lose()
}

// begun reports whether this replica has held the lease.
func (t *tenure) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewed != nil || t.holder != ""
}

// end gives the lease up.
func (t *tenure) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = nil
}

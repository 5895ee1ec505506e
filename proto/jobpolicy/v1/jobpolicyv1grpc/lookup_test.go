package jobpolicyv1grpc

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"
)

// dns is like gRPC's resolver of DNS names, but looks a name up only once.
type dns struct {
	addresses atomic.Pointer[[]resolver.Address]
	fails     atomic.Bool
	mu        sync.Mutex
	lookups   []time.Time
	open      atomic.Int32
}

// asked returns when the name was looked up.
func (d *dns) asked() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lookups)
}

func (d *dns) Scheme() string { return "dns" }

func (d *dns) Build(_ resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	d.mu.Lock()
	d.lookups = append(d.lookups, time.Now())
	d.mu.Unlock()
	d.open.Add(1)
	go func() {
		if d.fails.Load() {
			conn.ReportError(errors.New("no answer"))
			return
		}
		_ = conn.UpdateState(resolver.State{Addresses: *d.addresses.Load()}) // the real one backs off
	}()
	return once{d}, nil
}

type once struct{ dns *dns }

func (o once) ResolveNow(resolver.ResolveNowOptions) {}
func (o once) Close()                                { o.dns.open.Add(-1) }

// channel takes states as a gRPC connection does.
type channel struct {
	resolver.ClientConn
	address string
}

func (c *channel) UpdateState(s resolver.State) error {
	if len(s.Addresses) == 0 {
		return errors.New("no address")
	}
	c.address = s.Addresses[0].Addr
	return nil
}

func (c *channel) ReportError(error) {}

func startLookups(t *testing.T) (*dns, *channel, resolver.Resolver) {
	t.Helper()
	d, c := &dns{}, &channel{}
	d.addresses.Store(&[]resolver.Address{})
	r, err := lookups{d}.Build(resolver.Target{}, c, resolver.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d, c, r
}

func (d *dns) has(address string) { d.addresses.Store(&[]resolver.Address{{Addr: address}}) }

// While DNS has no address, or does not answer, it is asked in each period, however long
// that takes; when it has one, it is not asked any more.
func TestANameIsLookedUpUntilItIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c, r := startLookups(t)
		time.Sleep(time.Hour)
		d.fails.Store(true)
		time.Sleep(time.Hour)
		d.fails.Store(false)
		d.has("a")
		time.Sleep(lookupPeriod)
		synctest.Wait() // also for the race detector, wherever a test reads what a resolver wrote
		if c.address != "a" {
			t.Errorf("address %q after a period, want a", c.address)
		}
		asked := d.asked()
		for i, at := range asked[1:] {
			if gap := at.Sub(asked[i]); gap != lookupPeriod {
				t.Fatalf("lookup %d is %s after the one before, want %s", i+1, gap, lookupPeriod)
			}
		}
		found := len(d.asked())
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(d.asked()) - found; n > 0 {
			t.Errorf("%d lookups of a name that was found", n)
		}
		r.Close()
		if n := d.open.Load(); n != 0 {
			t.Errorf("%d resolvers are still open", n)
		}
	})
}

// A connection that ends leads to another lookup. If DNS still has the old address, the next
// failed try to connect leads to one more; many at a time lead to one in each period.
func TestALostConnectionIsLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c, r := startLookups(t)
		d.has("old")
		time.Sleep(time.Hour)
		synctest.Wait()
		before := len(d.asked())
		for range 100 {
			r.ResolveNow(resolver.ResolveNowOptions{})
		}
		synctest.Wait()
		if n := len(d.asked()) - before; n != 1 {
			t.Errorf("%d lookups at once, want 1", n)
		}
		d.has("new")
		for range 10 {
			r.ResolveNow(resolver.ResolveNowOptions{})
			time.Sleep(lookupPeriod / 10)
		}
		synctest.Wait()
		if n := len(d.asked()) - before; n != 2 || c.address != "new" {
			t.Errorf("%d lookups and address %q a period later, want 2 and new", n, c.address)
		}
		r.Close()
	})
}

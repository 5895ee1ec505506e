package leaderelection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestLeaseIsHeldUntilLeadingHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, r := startLeader(t)
		r.ask()
		<-r.asked
		time.Sleep(time.Minute) // many leases long
		if got := api.holder(); got != "first" {
			t.Errorf("holder while draining = %q, want first", got)
		}
		if err := r.tenure.check(); err != nil {
			t.Errorf("a write while draining: %v, want nil", err)
		}
		want := errors.New("as leading ended")
		r.end <- want
		if err := <-r.outcome; !errors.Is(err, want) {
			t.Errorf("Run() = %v, want what leading returned", err)
		}
		if got := api.holder(); got != "" {
			t.Errorf("holder afterwards = %q, want none", got)
		}
		if err := r.tenure.check(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a write after the lease was given up: %v, want ErrNotLeading", err)
		}
	})
}

func TestNextReplicaTakesOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, first := startLeader(t)
		second := start(t, config(api, "second"))
		synctest.Wait()
		if leader, standby := second.Standby(); !standby || leader != "first" {
			t.Errorf("Standby() = %q, %v; want the first replica to lead", leader, standby)
		}
		if _, standby := first.Standby(); standby {
			t.Error("the leader takes itself for a standby")
		}
		given := time.Now()
		first.ask()
		first.end <- nil
		if err := <-first.outcome; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
		<-second.began
		if waited, most := time.Since(given), config(api, "").RetryPeriod/8; waited > most {
			t.Errorf("the second replica waited %s, want at most %s", waited, most)
		}
	})
}

func TestNextReplicaTakesOverAsSoonAsTheLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, first := startLeader(t)
		second := start(t, config(api, "second"))
		time.Sleep(5 * time.Minute) // The lease may be renewed for long.
		api.setDown("first")
		silent := time.Now()
		<-second.began
		cfg := config(api, "")
		if waited, most := time.Since(silent), cfg.LeaseDuration+cfg.RetryPeriod/8; waited > most {
			t.Errorf("the second replica waited %s, want at most %s", waited, most)
		}
		if err := first.tenure.check(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a write of the first replica: %v, want ErrNotLeading", err)
		}
		lease := api.lease()
		for what, at := range map[string]time.Time{"acquired": lease.Spec.AcquireTime.Time, "renewed": lease.Spec.RenewTime.Time} {
			if time.Since(at) > time.Second {
				t.Errorf("the lease says that it was %s %s ago", what, time.Since(at))
			}
		}
	})
}

// The times in the lease are wall time, which other replicas and people compare with theirs.
func TestTheLeaseHasWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &leases{}
		cfg := config(api, "first")
		cfg.Now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
		first := start(t, cfg)
		<-first.began
		time.Sleep(time.Minute)
		lease := api.lease()
		for what, at := range map[string]time.Time{"acquired": lease.Spec.AcquireTime.Time, "renewed": lease.Spec.RenewTime.Time} {
			if off := cfg.Now().Sub(at); off < 0 || off > 2*time.Minute {
				t.Errorf("the lease says that it was %s %s ago", what, off)
			}
		}
	})
}

// Whoever holds a lease that somebody deletes writes on until it looks again. Until then
// nobody else may lead.
func TestADeletedLeaseMakesNoSecondLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, first := startLeader(t)
		second := start(t, config(api, "second"))
		synctest.Wait()
		api.remove()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if second.leads() && first.tenure.check() == nil {
				t.Fatal("two replicas may write")
			}
		}
		if got := api.holder(); got != "first" {
			t.Errorf("holder = %q, want still the first", got)
		}
		api.setDown("first")
		api.remove()
		removed := time.Now()
		<-second.began
		if err := first.tenure.check(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("the second replica leads %s after the lease was deleted; a write of the first: %v, want ErrNotLeading", time.Since(removed), err)
		}
	})
}

// A replica that was too late to create the lease has not read it, but knows that somebody
// holds it.
func TestALeaseThatAnotherReplicaCreatedFirstIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := startLeader(t)
		cfg := config(api, "second")
		second := build(t, cfg)
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "second", LeaseDurationSeconds: int(cfg.LeaseDuration.Seconds())}
		if err := second.lock.Create(t.Context(), record); !apierrors.IsAlreadyExists(err) {
			t.Fatalf("Create() = %v, want that it exists", err)
		}
		tried := time.Now()
		api.setDown("first")
		api.remove()
		if _, _, err := second.lock.Get(t.Context()); !apierrors.IsNotFound(err) {
			t.Errorf("Get() = %v, want that there is none", err)
		}
		if waited := time.Since(tried); waited < cfg.LeaseDuration {
			t.Errorf("the lease was free after %s, want %s", waited, cfg.LeaseDuration)
		}
	})
}

func TestStandbyEndsWithoutLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, _ := startLeader(t)
		standby := start(t, config(api, "second"))
		standby.ask()
		if err := <-standby.outcome; err != nil {
			t.Errorf("Run() = %v, want nil", err)
		}
		if standby.leads() {
			t.Error("the standby led")
		}
		if got := api.holder(); got != "first" {
			t.Errorf("holder = %q, want still the first", got)
		}
	})
}

func TestReplicaThatIsAskedToEndBeforeItLeadsLeavesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		api := &leases{onWrite: cancel} // while the lease is being acquired
		election := build(t, config(api, "first"))
		led := false
		err := election.Run(ctx, func(context.Context) error { led = true; return nil })
		if err != nil || led {
			t.Errorf("Run() = %v, led = %v; want nil, without leading", err, led)
		}
		if got := api.holder(); got != "" {
			t.Errorf("the lease is left to %q", got)
		}
	})
}

func TestLostLeaseIsReportedWithoutWaitingForLeadingToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, r := startLeader(t)
		api.setAway(true)
		if err := <-r.outcome; !errors.Is(err, ErrLost) {
			t.Errorf("Run() = %v, want ErrLost", err)
		}
		<-r.asked // and leading is asked to end
		if err := r.tenure.check(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a write after that: %v, want ErrNotLeading", err)
		}
	})
}

func TestLostLeaseIsReportedHoweverFastLeadingEnds(t *testing.T) {
	for range 5 { // who is first, leading or the election, is not said
		synctest.Test(t, func(t *testing.T) {
			api := &leases{}
			election := build(t, config(api, "first"))
			err := election.Run(t.Context(), func(lease context.Context) error {
				api.setAway(true)
				<-lease.Done()
				return nil
			})
			if !errors.Is(err, ErrLost) {
				t.Errorf("Run() = %v, want ErrLost", err)
			}
		})
	}
}

func TestAnotherHolderEndsTheTermAtOnce(t *testing.T) {
	for _, holder := range []string{"second", ""} { // "": it has come and gone
		synctest.Test(t, func(t *testing.T) {
			api, _, r := startLeader(t)
			api.take(holder)
			taken := time.Now()
			if err := <-r.outcome; !errors.Is(err, ErrLost) {
				t.Errorf("Run() = %v, want ErrLost", err)
			}
			if passed := time.Since(taken); passed > config(api, "").RetryPeriod {
				t.Errorf("the term ended after %s, want at the next renewal", passed)
			}
			if got := api.holder(); got != holder {
				t.Errorf("holder = %q, want still %q", got, holder)
			}
			if err := r.tenure.check(); !errors.Is(err, ErrNotLeading) {
				t.Errorf("a write after that: %v, want ErrNotLeading", err)
			}
		})
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	cases := map[string]func(*Config){
		"no client":              func(c *Config) { c.Client = nil },
		"no name":                func(c *Config) { c.Name = "" },
		"a lease below a second": func(c *Config) { c.LeaseDuration = time.Second - 1 },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := config(&leases{}, "first")
			change(&cfg)
			if _, err := New(cfg); !errors.Is(err, ErrConfig) {
				t.Errorf("New() = %v, want ErrConfig", err)
			}
		})
	}
}

func TestTwoReplicasOfOneHostHaveTwoNames(t *testing.T) {
	one, other := build(t, config(&leases{}, "")), build(t, config(&leases{}, ""))
	if one.cfg.Identity == other.cfg.Identity {
		t.Errorf("both are called %q", one.cfg.Identity)
	}
}

package policyserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// testCallers are callers that share little.
func testCallers(perCaller, total int) *callers {
	small := func() *pool { return newPool(1000) }
	return newCallers(&pools{calls: small(), received: small(), decoded: small(), answers: small(), processors: small(), largeRequests: small()}, perCaller, total)
}

func mustConnect(t *testing.T, cs *callers, identity string) *connection {
	t.Helper()
	conn := &connection{}
	if replaced, err := cs.connect(conn, identity); err != nil || replaced != nil {
		t.Fatalf("%s: replaces %v, error %v", identity, replaced, err)
	}
	return conn
}

// Metrics have a bounded number of names. What callers may hold does not depend on their
// names there.
func TestCallersWithoutANameInMetricsHaveTheirOwnShares(t *testing.T) {
	cs := testCallers(10, 1000)
	for i := range maxLabels {
		id := fmt.Sprintf("cn:caller-%d", i)
		if label := mustConnect(t, cs, id).caller.label; label != id {
			t.Errorf("caller %d is called %s, want %s", i, label, id)
		}
	}
	one, two := mustConnect(t, cs, "cn:one").caller, mustConnect(t, cs, "cn:two").caller
	if one.label != "other" || two.label != "other" {
		t.Errorf("callers above %d are called %s and %s, want other", maxLabels, one.label, two.label)
	}
	if err := one.processors.tryAcquire(one.processors.pool.most); err != nil {
		t.Fatal(err)
	}
	if err := one.processors.tryAcquire(1); !errors.Is(err, errOverShare) {
		t.Errorf("more than a share: %v, want %v", err, errOverShare)
	}
	if err := two.processors.tryAcquire(1); err != nil {
		t.Errorf("another caller without a name: %v", err)
	}
	if again := mustConnect(t, cs, "cn:caller-7").caller; again.label != "cn:caller-7" {
		t.Errorf("a known caller is called %s", again.label)
	}
}

func TestCallersThatLookTheSameHaveTheirOwnShares(t *testing.T) {
	cs := testCallers(10, 1000)
	long := strings.Repeat("x", 1000)
	one, two := mustConnect(t, cs, long+"1").caller, mustConnect(t, cs, long+"2").caller
	if one == two || one.label != two.label {
		t.Errorf("callers %p %s and %p %s: want two callers of one name", one, one.label, two, two.label)
	}
}

// However many callers take all that they can get of what is held for long, something is
// left for one more.
func TestCallersWhoHoldAllTheyCanLeaveSomething(t *testing.T) {
	p := newPool(1024)
	for n, want := range []int64{512, 256, 128, 64} {
		s := p.share()
		var got int64
		var err error
		for ; err == nil; got++ {
			err = s.tryAcquireFair(1)
		}
		if got--; got != want {
			t.Errorf("caller %d gets %d of 1024, want %d", n+1, got, want)
		}
		if wantErr := []error{errOverShare, errOverloaded}[min(n, 1)]; !errors.Is(err, wantErr) {
			t.Errorf("caller %d is told %q, want %q", n+1, err, wantErr)
		}
		if n == 3 { // What it gives back can be taken again.
			s.release(got)
			if err := s.tryAcquireFair(got); err != nil {
				t.Errorf("again as much as before: %v", err)
			}
		}
	}
}

// Whoever holds many connections leaves some to whoever has few.
func TestNobodyHoldsAllConnections(t *testing.T) {
	cs := testCallers(6, 10)
	var noisy []*connection
	for range 6 {
		noisy = append(noisy, mustConnect(t, cs, "cn:noisy"))
	}
	if _, err := cs.connect(&connection{}, "cn:noisy"); !errors.Is(err, errTooManyConnections) {
		t.Errorf("more than one caller may have: %v, want %v", err, errTooManyConnections)
	}
	for range 4 {
		mustConnect(t, cs, "cn:second")
	}
	for _, want := range []*connection{noisy[0], noisy[1]} {
		replaced, err := cs.connect(&connection{}, "cn:good")
		if err != nil || replaced != want {
			t.Errorf("replaces %p, error %v; want the oldest of the caller that has most, %p", replaced, err, want)
		}
		cs.disconnect(want) // as its Close does
	}
	for range 2 { // of noisy and of second in some order, or of nobody
		if _, err := cs.connect(&connection{}, "cn:good"); err != nil && !errors.Is(err, errFull) {
			t.Errorf("error %v, want none or %v", err, errFull)
		}
	}
	var counts []int
	for _, id := range []string{"cn:noisy", "cn:second", "cn:good"} {
		counts = append(counts, len(cs.by[id].connections))
	}
	if cs.open != 10 || counts[0]+counts[1]+counts[2] != 10 || min(counts[0], counts[1], counts[2]) < 3 {
		t.Errorf("%d connections are open, %d by caller; want 10, and at least 3 of each", cs.open, counts)
	}
	if _, err := cs.connect(&connection{}, "cn:noisy"); !errors.Is(err, errFull) {
		t.Errorf("more than a fair part: %v, want %v", err, errFull)
	}
}

func TestACallerIsForgottenAfterItsLastConnectionAndRequest(t *testing.T) {
	cs := testCallers(10, 1000)
	first := mustConnect(t, cs, "cn:executor")
	c := first.caller
	if !cs.begin(c) {
		t.Fatal("no request of a connected caller is handled")
	}
	cs.disconnect(first)
	second := mustConnect(t, cs, "cn:executor")
	if second.caller != c {
		t.Error("a caller whose request is handled gets new shares with a new connection")
	}
	cs.disconnect(second)
	cs.end(c)
	if len(cs.by) != 0 {
		t.Errorf("%d callers are kept without connections and requests", len(cs.by))
	}
	if cs.begin(c) {
		t.Error("a request of a forgotten caller is handled")
	}
	if third := mustConnect(t, cs, "cn:executor"); cs.begin(c) || !cs.begin(third.caller) {
		t.Error("requests are handled of the forgotten caller, or not of the one that connected after it")
	}
}

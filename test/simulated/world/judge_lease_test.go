package world

import (
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func leaseOf(uid types.UID, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "lease", UID: uid},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15))},
	}
}

func TestWhoeverLosesTheLeaseToAnotherWritesNothing(t *testing.T) {
	tp := newTape(t)
	tp.judge.elected = true
	for _, holder := range []string{executorA, executorB} {
		lease := leaseOf("lease", holder)
		tp.commit(holder, "update", "leases", "", lease, lease)
		tp.wait(time.Second)
	}
	tp.judge.sends(executorB, "POST", "pods", tp.now)
	if got := tp.judge.breaches(); len(got) > 0 {
		t.Errorf("breaches by the holder: %v", got)
	}
	tp.judge.sends(executorA, "POST", "pods", tp.now)
	if got := tp.judge.breaches(); len(got) != 1 {
		t.Errorf("breaches of the replica that held it before: %v, want one", got)
	}
}

// After somebody deletes the lease, an executor knows its last holder only if it has read the
// lease while that holder had it.
func TestADeletedLeaseIsStillItsHoldersToThoseWhoHaveSeenIt(t *testing.T) {
	for name, tc := range map[string]struct {
		read   string // The holder when executor B read the lease.
		broken bool
	}{
		"it has read the lease":               {read: executorA, broken: true},
		"it has read that of a former holder": {read: "executor-c"},
		"it has not":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t)
			tp.judge.elected = true
			hold := func(holder string) *coordinationv1.Lease { return leaseOf(types.UID(holder), holder) }
			for _, holder := range []string{"executor-c", executorA} {
				tp.commit(holder, "update", "leases", "", hold(holder), hold(holder))
				if tc.read == holder {
					tp.judge.readLease(executorB)
				}
				tp.wait(time.Minute)
			}
			tp.commit(executorA, "update", "leases", "", hold(executorA), hold(executorA))
			tp.commit(user, "delete", "leases", "", hold(executorA), nil)
			tp.wait(2 * time.Second)
			tp.commit(executorB, "create", "leases", "", hold(executorB), hold(executorB))
			tp.wait(time.Second)
			tp.judge.sends(executorA, "POST", "pods", tp.now)
			if got := len(tp.judge.breaches()) > 0; got != tc.broken {
				t.Errorf("breaches: %v, want some: %t", tp.judge.breaches(), tc.broken)
			}
		})
	}
}

func TestWhoWasTooLateToCreateTheLeaseKnowsThatThereIsAHolder(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		code   int
		tells  bool
	}{
		"it has read the lease":    {http.MethodGet, http.StatusOK, true},
		"there is no lease":        {http.MethodGet, http.StatusNotFound, false},
		"it has created the lease": {http.MethodPost, http.StatusCreated, false},
		"it was too late":          {http.MethodPost, http.StatusConflict, true},
		"its renewal was refused":  {http.MethodPut, http.StatusConflict, false},
	} {
		if got := tellsOfHolder(tc.method, tc.code); got != tc.tells {
			t.Errorf("%s: the answer tells of a holder: %t, want %t", name, got, tc.tells)
		}
	}
}

func TestWhoHasNotRenewedTheLeaseWritesNothing(t *testing.T) {
	cases := map[string]struct {
		holder string
		wait   time.Duration
		method string
		what   string
		broken bool
	}{
		"in time":                {holder: executorA, wait: 14 * time.Second, method: "PATCH", what: "pods"},
		"too late":               {holder: executorA, wait: 16 * time.Second, method: "PATCH", what: "pods", broken: true},
		"too late, but a read":   {holder: executorA, wait: 16 * time.Second, method: "GET", what: "pods"},
		"too late, but a lease":  {holder: executorA, wait: 16 * time.Second, method: "PUT", what: "leases"},
		"given up":               {wait: time.Second, method: "PATCH", what: "pods", broken: true},
		"never held, but by B":   {holder: executorB, wait: time.Second, method: "POST", what: "events", broken: true},
		"two are meant to write": {holder: "nobody", wait: time.Second, method: "PATCH", what: "pods"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t)
			tp.judge.elected = tc.holder != "nobody"
			by := executorA
			if tc.holder == executorB {
				by = executorB
			}
			lease := leaseOf("lease", tc.holder)
			tp.commit(by, "update", "leases", "", lease, lease)
			tp.wait(tc.wait)
			tp.judge.sends(executorA, tc.method, tc.what, tp.now)
			if got := len(tp.judge.breaches()) > 0; got != tc.broken {
				t.Errorf("breaches: %v, want some: %t", tp.judge.breaches(), tc.broken)
			}
		})
	}
}

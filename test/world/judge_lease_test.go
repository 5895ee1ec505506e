package world

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoHasNotRenewedTheLeaseWritesNothing(t *testing.T) {
	cases := map[string]struct {
		holder string
		wait   time.Duration
		method string
		what   string
		broken bool
	}{
		"in time":                {executorA, 14 * time.Second, "PATCH", "pods", false},
		"too late":               {executorA, 16 * time.Second, "PATCH", "pods", true},
		"too late, but a read":   {executorA, 16 * time.Second, "GET", "pods", false},
		"too late, but a lease":  {executorA, 16 * time.Second, "PUT", "leases", false},
		"given up":               {"", time.Second, "PATCH", "pods", true},
		"never held, but by B":   {executorB, time.Second, "POST", "events", true},
		"two are meant to write": {"nobody", time.Second, "PATCH", "pods", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t)
			tp.judge.elected = tc.holder != "nobody"
			by := executorA
			if tc.holder == executorB {
				by = executorB
			}
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "lease", UID: "lease"},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &tc.holder, LeaseDurationSeconds: ptr(int32(15))},
			}
			tp.commit(by, "update", "leases", "", lease, lease)
			tp.wait(tc.wait)
			tp.judge.sends(executorA, tc.method, tc.what, tp.now)
			if got := len(tp.judge.breaches()) > 0; got != tc.broken {
				t.Errorf("breaches: %v, want some: %t", tp.judge.breaches(), tc.broken)
			}
		})
	}
}

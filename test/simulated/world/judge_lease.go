package world

import (
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// leaseWritten records until when the holder of the lease may write: until the lease runs
// out, or somebody else gets it. An executor cannot know the holder if, before somebody deleted
// the lease, it had neither read it nor been too late to create it: then both may write until the
// holder checks the lease.
func (j *judge) leaseWritten(w apiserver.Write, ours bool) {
	lease, ok := w.New.(*coordinationv1.Lease)
	if !ok {
		j.leaseGone = w.Time
	}
	if !ours || !ok {
		return
	}
	if w.Old == nil {
		j.unaware[w.By] = !j.leaseGone.IsZero() && j.sawHolder[w.By] != j.holder
	}
	j.holder = valueOr(lease.Spec.HolderIdentity, "")
	until := w.Time.Add(time.Duration(valueOr(lease.Spec.LeaseDurationSeconds, 0)) * time.Second)
	if j.holder != w.By {
		until = w.Time
	}
	for other, held := range j.leases {
		if other != w.By && held.After(w.Time) && !j.unaware[w.By] {
			j.leases[other] = w.Time
		}
	}
	j.leases[w.By] = until
}

// readLease is called when an executor has read the lease, or was too late to create it. Either
// way it knows that somebody holds the lease.
func (j *judge) readLease(by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sawHolder[by] = j.holder
}

// sends is called when an executor hands a request to the network. With leader
// election, an executor that has not renewed its lease in time must send no write:
// another one may be active by now.
func (j *judge) sends(by, method, resource string, now time.Time) {
	if method == http.MethodGet || resource == "leases" {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	until, held := j.leases[by]
	switch {
	case !j.elected:
	case !held:
		j.breachAt(now, "lease", "%s sends a write (%s %s), and never had the lease", by, method, resource)
	case now.After(until):
		j.breachAt(now, "lease", "%s sends a write (%s %s) %s after its lease was over", by, method, resource, now.Sub(until))
	}
}

// breachAt records a breach that is not about an object.
func (j *judge) breachAt(now time.Time, rule, format string, args ...any) {
	j.now = now
	j.breach(rule, types.NamespacedName{}, "", format, args...)
}

// lists is called when an executor sends for a new list of all pods.
func (j *judge) lists(by string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writer(by).listed = now
}

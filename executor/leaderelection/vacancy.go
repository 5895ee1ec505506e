package leaderelection

import (
	"bytes"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A vacancy tells a standby when it may take the lease: when the holder gives it up, or has
// not renewed it for the duration of the lease. The standby measures that time on its own
// clock, from when it saw the last renewal.
type vacancy struct {
	raw    []byte // the lease as it was last seen; nil: it was never seen
	expiry time.Time
}

// seen takes what the standby has read of the lease.
func (v *vacancy) seen(record *resourcelock.LeaderElectionRecord, raw []byte, now time.Time) {
	if v.raw != nil && bytes.Equal(v.raw, raw) {
		return
	}
	v.raw = raw
	v.expiry = now
	if record.HolderIdentity != "" {
		v.expiry = now.Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
	}
}

// held records that another replica has just created the lease. It may hold the lease for
// this long.
func (v *vacancy) held(duration time.Duration, now time.Time) {
	if expiry := now.Add(duration); expiry.After(v.expiry) {
		v.expiry = expiry
	}
}

// left is how long the lease may still be held. A lease that was deleted may still be held,
// too: its holder may not have noticed yet.
func (v *vacancy) left(now time.Time) time.Duration { return max(0, v.expiry.Sub(now)) }

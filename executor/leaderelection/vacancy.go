package leaderelection

import (
	"bytes"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A vacancy tells a standby when it may take the lease: when the lease is given up, or
// when it was not renewed for as long as it lasts. The standby measures that time from
// when it saw the last renewal, on its own clock.
type vacancy struct {
	raw    []byte // the lease as it was seen last; nil: never
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

// held says that somebody else has just created the lease: for this long it may be held.
func (v *vacancy) held(duration time.Duration, now time.Time) {
	if expiry := now.Add(duration); expiry.After(v.expiry) {
		v.expiry = expiry
	}
}

// left is how long the lease may still be held. A lease that was deleted counts, too: its
// holder may not have noticed yet.
func (v *vacancy) left(now time.Time) time.Duration { return max(0, v.expiry.Sub(now)) }

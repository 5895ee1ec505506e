package cronjob

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
	"time"

	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// spareSeconds is the time between the latest stagger and the next run. Without it, the slightest
// delay would lose each run of a CronJob with a late offset.
const spareSeconds = 10

// A StartDelay is how much later than scheduled a run starts, in whole seconds.
type StartDelay struct {
	// Stagger is that of stagger_seconds, the same for each run of the CronJob.
	Stagger time.Duration
	// Jitter is that of start_jitter_seconds, another one for each run.
	Jitter time.Duration
}

// Total is the whole delay.
func (d StartDelay) Total() time.Duration { return d.Stagger + d.Jitter }

// text names the parts of the delay if there is a stagger.
func (d StartDelay) text() string {
	switch {
	case d.Stagger == 0:
		return ""
	case d.Jitter == 0:
		return fmt.Sprintf(": its stagger is %ds", int64(d.Stagger/time.Second))
	}
	return fmt.Sprintf(": its stagger is %ds, its jitter %ds", int64(d.Stagger/time.Second), int64(d.Jitter/time.Second))
}

// StartDelayOf returns the delay of the run that is due at a time. next is the next time of the
// schedule, zero if there is none. The run starts before it, and before the calendar ends.
// Of the CronJob, stagger needs the namespace and the name, and jitter the UID.
func StartDelayOf(cron *jobpolicyv1.CronJobRef, o *jobpolicyv1.CronJobOptions, at, next time.Time) StartDelay {
	room := timestamp.Last.Unix() - at.Unix()
	if !next.IsZero() {
		room = min(room, next.Unix()-at.Unix()-1)
	}
	interval := room + 1
	first := stagger(cron, min(int64(o.GetStaggerSeconds()), interval-max(1, min(spareSeconds, (interval+1)/2))))
	then := jitter(cron, at, min(int64(o.GetStartJitterSeconds()), room-first))
	return StartDelay{Stagger: time.Duration(first) * time.Second, Jitter: time.Duration(then) * time.Second}
}

// stagger returns 0 to most seconds: the CronJob's share of most. The share is the first 8 bytes of
// SHA-256 of "NAMESPACE/NAME" as a fraction of 2^64. A share keeps the order of CronJobs where
// there is less room.
func stagger(cron *jobpolicyv1.CronJobRef, most int64) int64 {
	if most <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(cron.GetNamespace() + "/" + cron.GetName()))
	share, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(most+1))
	return int64(share)
}

// jitter returns 0 to most seconds, always the same for the same run.
func jitter(cron *jobpolicyv1.CronJobRef, at time.Time, most int64) int64 {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(cron.GetUid()) // never fails
	_, _ = fmt.Fprintf(h, " %d", at.Unix())
	return int64(h.Sum64() % uint64(most+1))
}

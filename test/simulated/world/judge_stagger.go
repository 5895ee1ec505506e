package world

import (
	"crypto/sha256"
	"math/big"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/wire"
)

// staggerOf is the window in which a CronJob starts its runs, in seconds; 0 if it asks for none.
func staggerOf(cron *batchv1.CronJob) int64 {
	policy, _ := wire.PolicySpec(cron.Annotations)
	return int64(policy.GetCronJob().GetStaggerSeconds())
}

// startOf is when a run starts that is due at a time: at the CronJob's offset, which is its
// share of the window, or of what is left until 10 seconds, or half of the interval, before
// the next run.
func (j *judge) startOf(cron *batchv1.CronJob, at time.Time) time.Time {
	most, t := staggerOf(cron), j.timetable(cron)
	if most == 0 || t == nil {
		return at
	}
	if next := t.after(at); !next.IsZero() {
		interval := next.Unix() - at.Unix()
		most = min(most, interval-max(1, min(10, (interval+1)/2)))
	}
	sum := sha256.Sum256([]byte(cron.Namespace + "/" + cron.Name))
	share := new(big.Int).SetBytes(sum[:])
	share.Mul(share, big.NewInt(most+1)).Rsh(share, 256)
	return at.Add(time.Duration(share.Int64()) * time.Second)
}

// passedOver reports whether the next run is due so soon after a run with an offset starts, or
// whether it has been waiting since before the last change of its CronJob, that nobody needs to
// start it.
func (j *judge) passedOver(c *cronRecord, at, start time.Time) bool {
	if staggerOf(c.cron) == 0 {
		return false
	}
	next := j.timetable(c.cron).after(at)
	return at.Before(c.lastStimulus) || !next.IsZero() && next.Before(start.Add(startsWithin))
}

// newestStart is when the latest run that is due starts: it replaces the one that is owed.
func (j *judge) newestStart(c *cronRecord) time.Time {
	at, t := c.owed, j.timetable(c.cron)
	for next := t.after(at); !next.IsZero() && !next.After(j.now); next = t.after(at) {
		at = next
	}
	return j.startOf(c.cron, at)
}

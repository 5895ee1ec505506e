package limit

import (
	"sync"
	"time"
)

const (
	// baselineInFlight is how many writes may be in flight while the baseline is measured.
	baselineInFlight = 2
	// baselineWrites is how many writes measure a baseline anew, and baselinePeriod how
	// old it may be.
	baselineWrites = 4
	baselinePeriod = 5 * time.Second
	// maxQueued is how many of a Job's writes may wait in the API server's queue.
	maxQueued = 2
)

// vegas is the adaptive limit of a Limiter. The zero value allows the maximum.
type vegas struct {
	mu sync.Mutex
	// reduction is how far the limit is below the maximum. The limit is rounded down, so that
	// it can fall to baselineInFlight, where the baseline is measured anew.
	reduction          float64
	baseline, observed mean
	measuredAt         time.Time // when the baseline was measured
}

// mean is an exponentially weighted moving average; 0 before the first value.
type mean time.Duration

func (m *mean) add(d time.Duration) {
	if *m == 0 {
		*m = mean(d)
		return
	}
	*m += (mean(d) - *m) / 16
}

// limit is how many writes may be in flight; most is the maximum.
func (v *vegas) limit(most int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return int(float64(most) - v.reduction)
}

// observe takes the latency of a write, and whether it measures the baseline.
func (v *vegas) observe(latency time.Duration, baseline bool, most int, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	queueing, limit := false, float64(most)-v.reduction
	if baseline {
		v.baseline.add(latency)
		v.measuredAt = now
	} else {
		v.observed.add(latency)
		queueing = v.baseline > 0 && limit*float64(v.observed-v.baseline) > maxQueued*float64(v.observed)
	}
	step := 1 / limit
	if !queueing {
		step = -step
	}
	v.reduction = min(max(0, v.reduction+step), max(0, float64(most-baselineInFlight)))
}

// baselineExpired reports whether the baseline is to be measured anew.
func (v *vegas) baselineExpired(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.Sub(v.measuredAt) > baselinePeriod
}

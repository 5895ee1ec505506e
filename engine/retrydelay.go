package engine

import (
	"fmt"
	"hash/fnv"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A backoff says how long to wait after failed pods.
type backoff struct {
	// base is the delay after the first failure in a row, limit the longest one. Each
	// further failure multiplies the delay by factor.
	base, limit time.Duration
	factor      float64
	// list has the delays one by one, and the last one repeats. Empty: those above count.
	list []int32
	// jitter is the largest part of a delay by which it is longer, in percent; which part
	// follows from job, the Job's UID.
	jitter int32
	job    []byte
}

// readBackoff reads the retry delay of a Job; own is nil if it has none of its own.
func readBackoff(settings *jobpolicyv1.Settings, own *jobpolicyv1.RetryDelay, job []byte) backoff {
	b := backoff{base: defaultPodFailureBackoff, factor: 2, list: own.GetDelaysSeconds(), jitter: own.GetJitterPercent(), job: job}
	switch d := settings.GetPodFailureBackoff(); {
	case own != nil && own.InitialSeconds != nil:
		b.base = time.Duration(own.GetInitialSeconds()) * time.Second
	case d != nil:
		b.base = d.AsDuration()
	}
	b.limit = max(defaultMaxPodFailureBackoff, b.base)
	switch d := settings.GetMaxPodFailureBackoff(); {
	case own != nil && own.MaxSeconds != nil:
		b.limit = time.Duration(own.GetMaxSeconds()) * time.Second
	case d != nil:
		b.limit = max(d.AsDuration(), b.base)
	}
	if own != nil && own.Factor != nil {
		b.factor = own.GetFactor()
	}
	return b
}

// delay is how long to wait after the last of the failures.
func (b backoff) delay(r retryState) time.Duration {
	if r.consecutive <= 0 {
		return 0
	}
	delay := b.exact(r.consecutive)
	most := uint64(delay.Milliseconds()) * uint64(b.jitter) / 100
	if most == 0 {
		return delay
	}
	// The jitter depends on facts only, so every caller gets the same, at any time (invariants I7 and
	// I10).
	h := fnv.New64a()
	_, _ = h.Write(b.job) // never fails
	_, _ = fmt.Fprintf(h, " %d %d", r.group, r.consecutive)
	return delay + time.Duration(h.Sum64()%(most+1))*time.Millisecond
}

// exact is the delay after n failures in a row, without jitter.
func (b backoff) exact(n int32) time.Duration {
	if len(b.list) > 0 {
		return time.Duration(b.list[min(int(n), len(b.list))-1]) * time.Second
	}
	delay := float64(b.base) * power(b.factor, n-1)
	if delay >= float64(b.limit) { // Also if it is infinite.
		return b.limit
	}
	return time.Duration(delay)
}

// power is x to the n-th. Unlike math.Pow, it has the same bits on every processor.
func power(x float64, n int32) float64 {
	result := 1.0
	for ; n > 0; n /= 2 {
		if n%2 == 1 {
			result *= x
		}
		x *= x
	}
	return result
}

package bench

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// totals returns the counts of a namespace, when they changed last, and the
// first error of the kubelet.
func (k *kubelet) totals(namespace string) (total, time.Time, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.namespaces[namespace]
	if st == nil {
		return total{}, time.Time{}, k.err
	}
	return st.total, st.changed, k.err
}

// podCounts count the pods of one Job and how they ended.
type podCounts struct {
	total
	// firstSeen is when the Job's first pod was seen; lastEnd is when the write of the
	// last end was sent; lastRelease is when the last finalizer was seen to be gone.
	firstSeen, lastEnd, lastRelease time.Time
	// indexes is how many different indexes there were, and repeated how many
	// of them had more than one pod.
	indexes, repeated int
}

// counts returns the counts of a Job, which is empty if no pod of it was seen.
func (k *kubelet) counts(namespace string, job types.UID) podCounts {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.namespaces[namespace].jobs[job]
	if c == nil {
		return podCounts{}
	}
	l := podCounts{
		total: c.total, firstSeen: c.firstSeen, lastEnd: c.lastEnd, lastRelease: c.lastRelease, indexes: len(c.indexes),
	}
	for _, n := range c.indexes {
		if n > 1 {
			l.repeated++
		}
	}
	return l
}

// releases are the times from the end of each pod until its finalizer was seen to be
// gone, sorted.
func (k *kubelet) releases(namespace string) []time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []time.Duration
	for _, p := range k.namespaces[namespace].pods {
		if !p.ended.IsZero() && !p.released.IsZero() {
			all = append(all, p.released.Sub(p.ended))
		}
	}
	slices.Sort(all)
	return all
}

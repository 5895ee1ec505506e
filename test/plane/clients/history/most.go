package history

import (
	"slices"
	"time"
)

// MostPods is the largest number of pods that there were at the same time and that had not ended.
func (r *Recorder) MostPods() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	type step struct {
		at   time.Time
		more int
	}
	var steps []step
	for _, l := range r.order {
		if l.last().GetKind() != "Pod" {
			continue
		}
		steps = append(steps, step{l.seen[0], 1})
		if at, ok := l.over(); ok {
			steps = append(steps, step{at, -1})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(b.at) })
	now, most := 0, 0
	for _, s := range steps {
		now += s.more
		most = max(most, now)
	}
	return most
}

// over is when a pod was seen to have ended, or to be gone.
func (l *life) over() (time.Time, bool) {
	for i, version := range l.versions {
		if phase := phaseOf(version); phase == "Succeeded" || phase == "Failed" {
			return l.seen[i], true
		}
	}
	return l.seen[len(l.seen)-1], l.gone
}

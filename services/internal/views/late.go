package views

import (
	"maps"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/explain"
)

// lookEvery is how often the pods of a Job with more than maxBars pods are checked one by
// one.
const lookEvery = 10 * time.Second

// late are pods that have been Pending for long. The executor does not know why: that a
// volume cannot be mounted, for example, is only in events.
type late struct {
	pods int32
	// longest is the pod that was created first.
	longest *podcache.Pod
}

// example is one of these pods, if there are any.
func (l late) example() []corev1.Pod {
	if l.longest == nil {
		return nil
	}
	return []corev1.Pod{podOf(l.longest)}
}

func latePods(pods []*podcache.Pod, now time.Time) late {
	var l late
	for _, p := range pods {
		if p.Phase() != corev1.PodPending || p.Deleting || now.Sub(p.Created) < explain.SlowStart {
			continue
		}
		l.pods++
		if l.longest == nil || p.Created.Before(l.longest.Created) {
			l.longest = p
		}
	}
	return l
}

// mayBeLate reports whether the Job may have late pods: some pods are not ready long after
// the Job has started, and nothing says that they cannot start.
func mayBeLate(o executor.Observation, now time.Time) bool {
	s := &o.Job.Status
	return o.Hindered.Pods == 0 && wire.FinishedCondition(o.Job) == nil && s.Active > ptr.Deref(s.Ready, 0) &&
		s.StartTime != nil && now.Sub(s.StartTime.Time) >= explain.SlowStart
}

// A lookout looks for late pods. It remembers the result for Jobs with many pods, because
// it would take too long to check 100,000 pods for each snapshot.
type lookout struct {
	jobs PageJobs

	mu   sync.Mutex
	seen map[types.UID]looked
}

type looked struct {
	at   time.Time
	late late
}

// late finds the late pods of a Job.
func (l *lookout) late(o executor.Observation, now time.Time) late {
	if !mayBeLate(o, now) {
		return late{}
	}
	_, pods, _ := l.jobs.Job(o.Job.UID, maxBars)
	if pods.Known <= maxBars {
		return latePods(pods.Pods, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.seen[o.Job.UID]; ok && now.Sub(last.at) < lookEvery {
		return last.late
	}
	_, pods, _ = l.jobs.Job(o.Job.UID, math.MaxInt)
	found := latePods(pods.Pods, now)
	l.seen[o.Job.UID] = looked{now, found}
	return found
}

// forget drops results that are too old to be used.
func (l *lookout) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ types.UID, last looked) bool { return now.Sub(last.at) >= lookEvery })
}

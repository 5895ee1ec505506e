package events

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
)

// client-go's limits of events for an object: a burst, and then one in five minutes.
const (
	burst = 25
	qps   = 1. / 300
)

// LimitByReason are client-go's limits for each reason of an object's events. By
// default client-go counts all reasons of one type (Normal, Warning) together: then the
// creations of a large Job use up the limit, and nobody sees the event that it completed.
func LimitByReason() record.CorrelatorOptions {
	return record.CorrelatorOptions{SpamKeyFunc: spamKey, BurstSize: burst, QPS: qps}
}

func spamKey(ev *corev1.Event) string {
	o := &ev.InvolvedObject
	return strings.Join([]string{ev.Source.Component, ev.Source.Host, o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason}, "/")
}

// Allowance applies the limits of LimitByReason to the events about one object before an event
// is built: a Job with many pods would build thousands of events of one reason only to drop
// them. The zero value is ready for use.
type Allowance struct {
	mu     sync.Mutex
	limits map[string]flowcontrol.PassiveRateLimiter
}

// Recorder returns a recorder that records what the allowance permits.
func (a *Allowance) Recorder(next record.EventRecorder) record.EventRecorder {
	return allowed{next, a}
}

// allow reports whether there may be another event of the reason, and counts it.
func (a *Allowance) allow(reason string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit, ok := a.limits[reason]
	if !ok {
		limit = flowcontrol.NewTokenBucketPassiveRateLimiter(qps, burst)
		if a.limits == nil {
			a.limits = map[string]flowcontrol.PassiveRateLimiter{}
		}
		a.limits[reason] = limit
	}
	return limit.TryAccept()
}

type allowed struct {
	record.EventRecorder
	allowance *Allowance
}

// Eventf implements record.EventRecorder.
func (r allowed) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	if r.allowance.allow(reason) {
		r.EventRecorder.Eventf(object, kind, reason, format, args...)
	}
}

package executor

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"

	"jobpolicy.dev/executor/events"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// client-go's limits of events for an object: so many in a row, then one in five
// minutes.
const (
	eventBurst = 25
	eventQPS   = 1. / 300
)

// eventConfig is how events are sent. Counted over all reasons, as client-go does
// by itself, the creations of a large Job would use up its limits and its verdict
// would never be seen; so each reason has an allowance of its own.
func (c *Config) eventConfig() events.Config {
	return events.Config{
		Client: c.Events, Component: eventComponent, Registerer: c.Registerer, Logger: c.Logger,
		Limits: record.CorrelatorOptions{SpamKeyFunc: spamKey, BurstSize: eventBurst, QPS: eventQPS},
	}
}

func spamKey(ev *corev1.Event) string {
	o := &ev.InvolvedObject
	return strings.Join([]string{ev.Source.Component, ev.Source.Host, o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason}, "/")
}

// podEvent sends an event about one of the Job's pods. What the pipeline would
// drop is not built: a Job of many pods has events of one reason by the thousand.
func (e *Executor) podEvent(s *jobState, job *batchv1.Job, kind, reason, format string, arg any) {
	if s.allowEvent(reason) {
		e.recorder.Eventf(job, kind, reason, format, arg)
	}
}

// allowEvent reports whether there may be another event of that reason, and
// counts it.
func (s *jobState) allowEvent(reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, ok := s.podEvents[reason]
	if !ok {
		limit = flowcontrol.NewTokenBucketPassiveRateLimiter(eventQPS, eventBurst)
		if s.podEvents == nil {
			s.podEvents = map[string]flowcontrol.PassiveRateLimiter{}
		}
		s.podEvents[reason] = limit
	}
	return limit.TryAccept()
}

// recordEvents sends the events of a decision. It is called once the status
// that makes them true is written.
func (e *Executor) recordEvents(job *batchv1.Job, told []*jobpolicyv1.JobEvent) {
	for _, ev := range told {
		kind := corev1.EventTypeNormal
		if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			kind = corev1.EventTypeWarning
		}
		e.recorder.Event(job, kind, ev.GetReason(), ev.GetMessage())
	}
}

package executor

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/events"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// eventConfig is how events are sent.
func (c *Config) eventConfig() events.Config {
	return events.Config{
		Client: c.Events, Component: eventComponent, Registerer: c.Registerer, Logger: c.Logger, Limits: events.LimitByReason(),
	}
}

// podCalls returns what a reconcile calls about the Job's pods.
func (e *Executor) podCalls(s *jobState) *api.Pods {
	return e.api.Pods(s.uid, s.pods, s.podEvents.Recorder(e.recorder))
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

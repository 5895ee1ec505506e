package executor

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// newBroadcaster makes the event pipeline. client-go lets 25 events in a row
// through for an object and source, then one in five minutes. Counted over all
// reasons, as it does by itself, the creations of a large Job would use that up
// and its verdict would never be seen; so each reason has an allowance of its
// own.
func newBroadcaster() record.EventBroadcaster {
	return record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{SpamKeyFunc: spamKey}))
}

func spamKey(ev *corev1.Event) string {
	o := &ev.InvolvedObject
	return strings.Join([]string{ev.Source.Component, ev.Source.Host, o.APIVersion, o.Kind, o.Namespace, o.Name, string(o.UID), ev.Reason}, "/")
}

// recordEvents sends the events of a decision. It is called once the status
// that makes them true is written.
func (e *Executor) recordEvents(job *batchv1.Job, events []*jobpolicyv1.JobEvent) {
	for _, ev := range events {
		kind := corev1.EventTypeNormal
		if ev.GetType() == jobpolicyv1.EventType_EVENT_TYPE_WARNING {
			kind = corev1.EventTypeWarning
		}
		e.recorder.Event(job, kind, ev.GetReason(), ev.GetMessage())
	}
}

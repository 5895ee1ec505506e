package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// held reports whether the Job does not start because the options that it asks for cannot
// be read. A Job that has started goes on, and one that is suspended does not start anyway.
func (s *snapshot) held() bool {
	return len(s.spec.GetOptionProblems()) > 0 && s.status.GetStartTime() == nil && !s.spec.GetSuspend() && !s.declared() && hasNoPods(s)
}

// policyEvents say what is wrong with the options that the Job asks for.
func policyEvents(s *snapshot) []*jobpolicyv1.JobEvent {
	var events []*jobpolicyv1.JobEvent
	for _, problem := range s.spec.GetOptionProblems() {
		events = append(events, &jobpolicyv1.JobEvent{
			Type: jobpolicyv1.EventType_EVENT_TYPE_WARNING, Reason: eventInvalidPolicy, Message: problem,
		})
	}
	return events
}

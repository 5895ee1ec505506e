package engine

import jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"

// held reports whether the Job does not start because the options that it asks for cannot
// be read. A Job that has started goes on with the last ones (optionsLost), and one that is
// suspended does not start anyway.
func (s *snapshot) held() bool {
	return s.waitsForOptions() && !s.spec.GetSuspend() && !s.declared() && hasNoPods(s)
}

// waitsForOptions reports whether the options that the Job asks for cannot be read, and it has no start time.
func (l lifetime) waitsForOptions() bool {
	return len(l.spec.GetOptionProblems()) > 0 && l.status.GetStartTime() == nil
}

// optionsLost reports whether the options that the Job asks for cannot be read, and the caller
// does not know the last ones that could be. Then a Job that has started gets no more pods:
// they might be pods that its options forbid, such as retries without a delay. One that has
// finished is kept (expire).
func (l lifetime) optionsLost() bool {
	return len(l.spec.GetOptionProblems()) > 0 && l.spec.GetOptions() == nil
}

// policyWait is the wait for options that can be read. There must be problems.
func (s *snapshot) policyWait() *jobpolicyv1.Wait {
	return wait(jobpolicyv1.WaitReason_WAIT_REASON_INVALID_POLICY, "a valid policy (%s)", s.spec.GetOptionProblems()[0])
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

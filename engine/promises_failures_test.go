package engine_test

import (
	"time"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// endFailures checks which failed pods the end tells: no more than asked for, each once, and of the failed pods of
// the request those that finished last, the newest first.
func (p *promises) endFailures(end *jobpolicyv1.JobEnd) {
	told := end.GetFailures()
	p.expect(len(told) <= int(p.req.GetSpec().GetOptions().GetEndConditionFailures()), "tells %d failures", len(told))
	finished := map[string]time.Time{}
	for _, f := range p.req.GetRetry().GetRecentFailures() {
		finished[f.GetFailure().GetPodName()] = f.GetFinishedTime().AsTime()
	}
	seen := map[string]bool{}
	for i, f := range told {
		name := f.GetPodName()
		p.expect(!seen[name] || name == "", "tells pod %s twice", name)
		seen[name] = true
		p.expect(len(f.GetTerminationMessage()) <= jobend.MaxLineBytes && jobend.LastLine(f.GetTerminationMessage()) == f.GetTerminationMessage(),
			"pod %s says %q", name, f.GetTerminationMessage())
		if i == 0 {
			continue
		}
		at, known := finished[name]
		before, knownBefore := finished[told[i-1].GetPodName()]
		if len(p.req.GetUnaccountedPods())+len(p.req.GetUnstartedPods())+len(p.req.GetActivePods().GetPods()) == 0 && known && knownBefore {
			p.expect(!before.Before(at), "tells pod %s, which failed at %s, before pod %s, which failed at %s", told[i-1].GetPodName(), before, name, at)
		}
	}
}

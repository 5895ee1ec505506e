package engine_test

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Pods of the model that are told to end fail, sooner or later, or not before they are overdue: their node is lost.

// observeDeadline adds what stands on a pod about its end.
func (c *cluster) observeDeadline(row *jobpolicyv1.ActivePod, p *modelPod) {
	if c.spec.GetOptions().GetWhenJobFails() != jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS {
		return
	}
	row.PodName, row.ActiveDeadlineSeconds, row.GracePeriodSeconds = "pod", p.deadline, 30
	if p.scheduled {
		row.StartTime = timestamppb.New(p.ran)
	}
}

// end tells pods to end. That may be refused, or undone by whoever is asked whether it is allowed.
func (c *cluster) end(ends []*jobpolicyv1.EndPod) bool {
	ok := true
	for _, e := range ends {
		p, seconds := c.pod(e.GetUid()), e.GetActiveDeadlineSeconds()
		if p.deadline != nil && *p.deadline <= seconds {
			c.t.Fatalf("pod %s may be active for %ds, and the decision would make that %ds", uidName(p.uid), *p.deadline, seconds)
		}
		switch {
		case c.goesWrong("end refused"):
			ok = false
		case !c.goesWrong("end undone"):
			p.deadline = &seconds
		}
	}
	return ok
}

// toldToEnd reports whether the pod's node ends it.
func (c *cluster) toldToEnd(p *modelPod) bool {
	return p.deadline != nil && p.scheduled && !p.ran.Add(time.Duration(*p.deadline)*time.Second).After(c.now)
}

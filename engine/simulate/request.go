package simulate

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/timestamp"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

func (p *player) at(d time.Duration) *timestamppb.Timestamp { return timestamp.Of(p.sc.Start.Add(d)) }

// maxRows is the contract's limit on rows of pods.
const maxRows = 100_000

// request is the snapshot of this moment.
func (p *player) request(activeRows bool) *jobpolicyv1.DecideJobRequest {
	counted := make([]*podfacts.Counted[*simPod], 0, len(p.pods))
	p.counter.SetPolicy(podfacts.PolicyOf(p.spec))
	for _, pod := range p.pods {
		p.counter.Remove(&pod.counted)
		p.counter.Add(&pod.counted, false)
		counted = append(counted, &pod.counted)
	}
	recorded := podfacts.Recorded(p.status)
	terminating := p.counter.TerminatingPods(p.spec.GetOptions(), recorded, p.at(p.now).AsTime(), nodeState) // Before Retry, as it says.
	req := &jobpolicyv1.DecideJobRequest{
		Now: p.at(p.now), Job: p.job, Spec: p.spec, Status: p.status, Settings: p.sc.Settings, Retry: p.counter.Retry(nil),
		TerminatingPods: terminating, Deferrals: p.deferrals(),
		Pods: p.counter.Totals.Summary(), ConfirmedReleases: recorded.Confirmed(func(uid string) bool { return p.tracked[uid] }),
	}
	if p.counter.Totals.HasRun() {
		podfacts.TellHasRun(req)
	}
	req.UnaccountedPods, req.UnlistedPods = p.counter.Rows(recorded, maxRows, nil)
	if never := p.spec.GetOptions().GetNeverStarted(); len(never) > 0 {
		req.UnstartedPods = p.counter.Unstarted(never, recorded)
	}
	if activeRows {
		req.ActivePods = p.counter.Active(slices.Values(counted), recorded, maxRows, p.spec.GetOptions())
	}
	return req
}

// facts are what the engine reads about a pod.
func (p *player) facts(pod *simPod) podfacts.Pod {
	at := func(d time.Duration) time.Time { return p.at(d).AsTime() }
	facts := podfacts.Pod{
		UID: pod.uid, Name: pod.life.Name, Phase: pod.phase, Index: pod.index,
		Tracked: pod.tracked, Deleting: pod.deleting, Scheduled: pod.life.Started != nil, Ready: pod.ready,
		HasRun:  pod.life.Started != nil,
		Start:   p.unstarted(pod),
		Created: at(pod.life.Created), ResourceStep: pod.step, IndexFailures: pod.failures, IndexIgnoredFailures: pod.ignored,
	}
	facts.Started, facts.GracePeriodSeconds = facts.Created, int64(p.sc.GracePeriod/time.Second)
	if pod.deadline > 0 {
		facts.ActiveDeadlineSeconds = new(int64(pod.deadline / time.Second))
	}
	switch {
	case pod.ended():
		facts.Finished = at(pod.finished)
	case pod.deleting:
		facts.DeletionRequested, facts.DeletionDue = at(pod.finished), at(p.due(pod))
	case pod.ready:
		facts.ReadySince = at(pod.readySince)
	}
	for _, c := range pod.containers {
		facts.Restarts += int64(c.restarts)
		switch {
		case c.sidecar():
			facts.MaxSidecarRestarts = max(facts.MaxSidecarRestarts, c.restarts)
		case !c.Init:
			facts.MaxRestarts = max(facts.MaxRestarts, c.restarts)
		}
	}
	if pod.overdue {
		facts.Reason = podOverdue
	}
	if pod.ended() || pod.deleting {
		facts.Exits = pod.exits(true)
	}
	if pod.disrupted {
		facts.Conditions = []*jobpolicyv1.PodConditionPattern{{
			Type: "DisruptionTarget", Status: jobpolicyv1.ConditionStatus_CONDITION_STATUS_TRUE,
		}}
	}
	return facts
}

// unstarted says that an image cannot be pulled, if a pod is stuck of which no container has run; nil if not.
func (p *player) unstarted(pod *simPod) *jobpolicyv1.PodStart {
	stuck := false
	for _, c := range pod.containers {
		if stuck = stuck || c.state == unstartable; c.state != notStarted && c.state != unstartable {
			return nil
		}
	}
	if !stuck {
		return nil
	}
	return &jobpolicyv1.PodStart{
		Problem: jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE, Reason: "ImagePullBackOff", Since: p.at(pod.life.Created),
	}
}

// prune forgets pods that neither run nor have to be counted.
func (p *player) prune() {
	p.pods = slices.DeleteFunc(p.pods, func(pod *simPod) bool {
		over := pod.ended() && !pod.tracked
		if over {
			p.counter.Remove(&pod.counted)
		}
		return over
	})
	p.counter.Tidy()
}

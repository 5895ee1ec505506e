package wire

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// maxContainerNameBytes is the contract's limit on names of containers, and on reasons. A longer one
// would make every request about the Job invalid.
const maxContainerNameBytes = 253

// Pod converts a pod. It fails for a UID that the contract cannot carry.
func Pod(pod *corev1.Pod) (podfacts.Pod, error) {
	if _, err := UIDBytes(pod.UID); err != nil {
		return podfacts.Pod{}, err
	}
	p := podcache.From(pod)
	return PodFacts(p), nil
}

// PodFacts converts a pod. If its UID is none of an API server, the facts have the UID's text, and
// a decision that names it is refused (CheckDecision).
func PodFacts(p *podcache.Pod) podfacts.Pod {
	uid, err := UIDBytes(p.UID)
	if err != nil {
		uid = []byte(p.UID)
	}
	facts := podfacts.Pod{
		UID: uid, Name: p.Name, Phase: PodPhase(p.Phase()),
		Tracked: p.HasTrackingFinalizer, Deleting: p.Deleting, Scheduled: p.Scheduled, Ready: p.Ready, HasRun: p.HasRun,
		Created: Time(p.Created), Finished: Time(p.ContainersEnded), DeletionRequested: Time(p.DeletionAsked), DeletionDue: Time(p.DeletionDue()),
		ResourceStep: int32(p.ResourceStep), IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures,
		Restarts: p.Restarts, MaxRestarts: p.MaxRestarts, MaxSidecarRestarts: p.MaxSidecarRestarts,
	}
	facts.Started, facts.GracePeriodSeconds = Time(p.Started()), p.GracePeriod()
	if seconds, limited := p.ActiveDeadline(); limited {
		facts.ActiveDeadlineSeconds = new(seconds)
	}
	if p.Index != podcache.NoIndex {
		facts.Index = &p.Index
	}
	switch {
	case p.Ready:
		facts.ReadySince = Time(p.ReadyChanged)
	case p.Unready:
		facts.UnreadySince = Time(p.ReadyChanged)
	}
	if start := p.Start(); start.Unstarted && (start.Problem != 0 || p.Ended() || p.Deleting) {
		facts.Start = podStart(start)
	}
	if p.Ended() || p.Deleting {
		addFailure(&facts, p)
	} else if n := len(p.Exits); n > 0 && !p.Exits[n-1].Restarted().IsZero() {
		facts.LastExit, facts.LastExited = containerExit(&p.Exits[n-1]), Time(p.Exits[n-1].Restarted())
	}
	return facts
}

// containerExit converts the end of a container.
func containerExit(exit *podcache.Exit) *jobpolicyv1.ContainerExit {
	return &jobpolicyv1.ContainerExit{
		ContainerName: Text(exit.Container, maxContainerNameBytes), ExitCode: exit.Code,
		Reason: Text(exit.Reason, maxContainerNameBytes), Signal: exit.Signal, TerminationMessage: exit.Message,
	}
}

func podStart(start podcache.Start) *jobpolicyv1.PodStart {
	m := &jobpolicyv1.PodStart{Problem: start.Problem, Reason: Text(start.Reason, maxContainerNameBytes)}
	if start.Problem != 0 {
		m.Since = Timestamp(start.Since())
	}
	return m
}

// addFailure adds how a pod failed. Only a pod that has ended or is being deleted may have failed.
func addFailure(facts *podfacts.Pod, p *podcache.Pod) {
	facts.Reason = Text(p.Reason(), maxContainerNameBytes)
	for i := range p.Exits {
		if p.Exits[i].Restarted().IsZero() {
			facts.Exits = append(facts.Exits, containerExit(&p.Exits[i]))
		}
	}
	p.EachCondition(func(c podcache.Condition) {
		if status := conditionStatuses[c.Status]; status != 0 { // Anybody who may write a status may write any other text.
			facts.Conditions = append(facts.Conditions, &jobpolicyv1.PodConditionPattern{Type: string(c.Type), Status: status})
		}
	})
}

// NodeState converts a node; nil: there is none. A node without the condition Ready is not Ready, as for Kubernetes.
func NodeState(node *corev1.Node) jobpolicyv1.NodeState {
	if node == nil {
		return jobpolicyv1.NodeState_NODE_STATE_GONE
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return jobpolicyv1.NodeState_NODE_STATE_READY
		}
	}
	return jobpolicyv1.NodeState_NODE_STATE_NOT_READY
}

// PodPolicy returns what a Job's spec says about how its pods count. Of an invalid spec, about which
// no request can be made, it says nothing.
func PodPolicy(job *batchv1.Job) podfacts.Policy {
	spec, _ := JobSpec(job)
	return podfacts.PolicyOf(spec)
}

package wire

import (
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// Pod converts a pod. It fails for a UID that the contract cannot carry.
func Pod(pod *corev1.Pod) (podfacts.Pod, error) {
	p := podcache.From(pod)
	uid, err := UIDBytes(p.UID)
	if err != nil {
		return podfacts.Pod{}, err
	}
	facts := podfacts.Pod{
		UID: uid, Name: p.Name, Phase: PodPhase(p.Phase()),
		Tracked: p.HasTrackingFinalizer, Deleting: p.Deleting, Scheduled: p.Scheduled, Ready: p.Ready,
		Created: Time(p.Created), Finished: Time(p.ContainersEnded), DeletionRequested: Time(p.DeletionAsked),
		IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures,
		Restarts: p.Restarts, MaxRestarts: p.MaxRestarts, MaxSidecarRestarts: p.MaxSidecarRestarts,
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
	for _, exit := range p.Exits {
		facts.Exits = append(facts.Exits, &jobpolicyv1.ContainerExit{ContainerName: exit.Container, ExitCode: exit.Code})
	}
	p.EachCondition(func(c podcache.Condition) {
		facts.Conditions = append(facts.Conditions, &jobpolicyv1.PodConditionPattern{
			Type: string(c.Type), Status: conditionStatusMessage(c.Status),
		})
	})
	return facts, nil
}

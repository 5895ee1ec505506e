package wire

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/podcache"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// PodFacts is what policy reads of a pod. It has the fields of Pod of package
// engine/snapshot, in the same order, so that a caller of the engine converts it:
// snapshot.Pod(facts). This module does not import the engine.
type PodFacts struct {
	UID       []byte
	Name      string
	Phase     jobpolicyv1.PodPhase
	Tracked   bool
	Deleting  bool
	Scheduled bool
	Ready     bool
	Index     *int32

	Created                  time.Time
	Finished                 time.Time
	DeletionRequested        time.Time
	ReadySince, UnreadySince time.Time

	Exits                               []*jobpolicyv1.ContainerExit
	Conditions                          []*jobpolicyv1.PodConditionPattern
	IndexFailures, IndexIgnoredFailures int32
	Restarts                            int64
	MaxRestarts, MaxSidecarRestarts     int32
}

// Pod converts a pod. It fails for a UID that the contract cannot carry.
func Pod(pod *corev1.Pod) (PodFacts, error) {
	p := podcache.From(pod)
	uid, err := UIDBytes(p.UID)
	if err != nil {
		return PodFacts{}, err
	}
	facts := PodFacts{
		UID: uid, Name: p.Name, Phase: PodPhase(p),
		Tracked: p.HasTrackingFinalizer, Deleting: p.Deleting, Scheduled: p.Scheduled, Ready: p.Ready,
		Created: p.Created, Finished: p.ContainersEnded, DeletionRequested: p.DeletionAsked,
		IndexFailures: p.IndexFailures, IndexIgnoredFailures: p.IndexIgnoredFailures,
		Restarts: p.Restarts, MaxRestarts: p.MaxRestarts, MaxSidecarRestarts: p.MaxSidecarRestarts,
	}
	if p.Index != podcache.NoIndex {
		facts.Index = &p.Index
	}
	switch {
	case p.Ready:
		facts.ReadySince = p.ReadyChanged
	case p.Unready:
		facts.UnreadySince = p.ReadyChanged
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

package podfacts

import (
	"cmp"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Pod holds what the engine reads about one pod. A caller sets UID, Phase and
// Tracked, and of the other fields those that it knows. A time that is not known is
// zero.
type Pod struct {
	// UID has 1 to 64 bytes; in Kubernetes, the 16 bytes of metadata.uid. Two pods never share
	// one, not even one after the other.
	UID []byte
	// If the Job fails because of this pod, Name is part of the message.
	Name string
	// Phase: unspecified counts as pending.
	Phase jobpolicyv1.PodPhase
	// Tracked: the pod's end is not accounted for yet. In Kubernetes, the pod holds the
	// finalizer batch.kubernetes.io/job-tracking. Every new pod is tracked, until a
	// decision releases it for good.
	Tracked bool
	// Deleting: someone requested the pod's deletion.
	Deleting bool
	// Scheduled: the pod has a place to run.
	Scheduled bool
	// Ready: the pod's condition Ready is true.
	Ready bool
	// HasRun: one of its containers has run, init containers aside. Read only of a pod with a Reason, and for a Job with a
	// deadline to start.
	HasRun bool
	// Index is the pod's completion index, 0 to 2147483646; nil: none, or not such a number.
	// A Counter drops any other number.
	Index *int32

	// Created is when the pod was created.
	Created time.Time
	// Finished is when the last of its containers ended.
	Finished time.Time
	// DeletionRequested is when someone requested its deletion.
	DeletionRequested time.Time
	// DeletionDue is when it was to be gone. In Kubernetes metadata.deletionTimestamp. Read only for a Job with a
	// termination deadline.
	DeletionDue time.Time
	// Node is the state of its node. Read only of pods that are being deleted and have not ended, for a Job with
	// options.termination_deadline_node NOT_READY; unspecified: not known, so the pod does not count as failed.
	Node jobpolicyv1.NodeState
	// Started is when a node took the pod. In Kubernetes status.startTime. ActiveDeadlineSeconds is for how long it may
	// be active since then (spec.activeDeadlineSeconds); nil: for ever. GracePeriodSeconds is how long its
	// node gives it to end (spec.terminationGracePeriodSeconds). They are read only of active pods, with
	// options.when_job_fails END_PODS.
	Started               time.Time
	ActiveDeadlineSeconds *int64
	GracePeriodSeconds    int64
	// ReadySince and UnreadySince are when the condition Ready last became true, or
	// false. If the containers do not say when they ended, UnreadySince counts as the
	// end of the pod.
	ReadySince, UnreadySince time.Time

	// Exits are the containers that ended with a code other than 0, those of init
	// containers last. Conditions are the pod's conditions, Reason is the reason in its status. They are
	// read only if the pod may have failed.
	Exits      []*jobpolicyv1.ContainerExit
	Conditions []*jobpolicyv1.PodConditionPattern
	Reason     string
	// LastExit is how that container ended last, at LastExited, that was restarted last; nil if none
	// was. It is read only of active pods.
	LastExit   *jobpolicyv1.ContainerExit
	LastExited time.Time
	// Start says that no container has run, init containers included, and what keeps the pod from
	// starting, if its status shows that. It is nil if one has run, and for an active pod without
	// such a problem. It is read only for Jobs with options.never_started.
	Start *jobpolicyv1.PodStart
	// IndexFailures and IndexIgnoredFailures are the values of CreatePods.failure_counts
	// when the pod was created.
	IndexFailures, IndexIgnoredFailures int32
	// ResourceStep is RaisedPods.step when the pod was created; 0: none.
	ResourceStep int32
	// Restarts adds up the restarts of all containers, MaxRestarts is the highest
	// among regular ones, MaxSidecarRestarts among restartable init containers.
	Restarts                        int64
	MaxRestarts, MaxSidecarRestarts int32
}

func (p *Pod) ended() bool {
	return p.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || p.Phase == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

func (p *Pod) succeeded() bool { return p.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED }

func (p *Pod) phase() jobpolicyv1.PodPhase {
	return cmp.Or(p.Phase, jobpolicyv1.PodPhase_POD_PHASE_PENDING)
}

// restarts are the restarts that count: those of a pod that has not ended.
func (p *Pod) restarts() int64 {
	if phase := p.phase(); phase == jobpolicyv1.PodPhase_POD_PHASE_PENDING || phase == jobpolicyv1.PodPhase_POD_PHASE_RUNNING {
		return p.Restarts
	}
	return 0
}

// deletedBeforeEnd reports whether somebody requested the pod's deletion before it ended. Times of the
// API are whole seconds. A pod that ended in the second in which its deletion was requested counts as
// ended by that, because most containers end within a second when they are asked to.
func (p *Pod) deletedBeforeEnd() bool {
	return p.Deleting && (!p.ended() || !p.Finished.IsZero() && !p.Finished.Before(p.DeletionRequested))
}

// EndTime is UnaccountedPod.finished_time: never before the pod was created, because
// otherwise a node with a slow clock would make the retry delay end too early.
func (p *Pod) EndTime() time.Time {
	at := p.reportedEnd()
	if at.Before(p.Created) {
		at = p.Created
	}
	if at.IsZero() {
		return time.Unix(0, 0)
	}
	return at
}

// reportedEnd is when the pod ended, as far as that is known; zero if it is not known.
func (p *Pod) reportedEnd() time.Time {
	switch {
	case !p.Finished.IsZero():
		return p.Finished
	case !p.Ready && !p.UnreadySince.IsZero():
		return p.UnreadySince
	case p.Deleting:
		return p.DeletionRequested
	default:
		return time.Time{}
	}
}

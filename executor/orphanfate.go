package executor

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

// A fate is what becomes of a pod.
type fate int

const (
	leaveAlone fate = iota
	mayRelease
	// retryLater: the Job exists and is not in the cache yet, or a Job may adopt the pod. The
	// pod is looked at again later.
	retryLater
)

// fate says what becomes of a pod. An orphan is released, because nobody else removes its
// finalizer. Pods of other controllers and of unmanaged Jobs are left alone (invariant I9).
//
// If the built-in controller runs beside the executor, a pod is also left alone if it is not
// known to have belonged to a managed Job. Such a pod is not stuck: the built-in controller
// releases the pods of every Job that is gone, and the pods that nothing controls.
func (r *orphanReleaser) fate(ctx context.Context, pod *podcache.Pod, wasManaged bool) (fate, error) {
	ref, other := pod.ControllingJob()
	switch {
	case other:
		return leaveAlone, nil
	case ref == nil:
		return r.uncontrolled(pod, wasManaged), nil
	}
	s, ok := r.cfg.Jobs.Find(tracker.KeyOfOwner(pod, ref))
	if !ok {
		return r.askForJob(ctx, pod, ref)
	}
	job := s.Current()
	switch lifecycle := s.Lifecycle(); {
	case job != nil && (!r.cfg.Scope.Manages(job) || wire.FinishedCondition(job) == nil), lifecycle == tracker.GoneUnmanaged:
		return leaveAlone, nil
	case job != nil, lifecycle == tracker.Gone:
		return mayRelease, nil
	default:
		return r.askForJob(ctx, pod, ref)
	}
}

// uncontrolled is fate for a pod that nothing controls; wasManaged says that a managed Job
// controlled it before. A managed Job that selects the pod may adopt it. If an unmanaged
// Job selects the pod, its manager may still need the finalizer; but if the executor
// replaces the built-in controller, it releases the pod, as the built-in controller does.
func (r *orphanReleaser) uncontrolled(pod *podcache.Pod, wasManaged bool) fate {
	for _, s := range r.cfg.Jobs.Selecting(pod) {
		job := s.Current()
		switch {
		case job == nil:
		case !r.cfg.Scope.Manages(job):
			if !r.cfg.Scope.ReplaceBuiltin && wire.FinishedCondition(job) == nil {
				return leaveAlone
			}
		case wire.FinishedCondition(job) != nil:
			wasManaged = true
		case job.DeletionTimestamp == nil && !pod.Deleting:
			// The Job may adopt the pod, unless it is being deleted without its pods, which the
			// cache may not show yet.
			return retryLater
		default:
			wasManaged = true
		}
	}
	if wasManaged || r.cfg.Scope.ReplaceBuiltin {
		return mayRelease
	}
	return leaveAlone
}

// A jobReference is a Job as an owner reference names it. The API server does not check that the
// name and the UID belong together.
type jobReference struct {
	tracker.Key
	name string
}

// askForJob asks the API server whether a Job exists that is not in the cache. If not, that says
// nothing about a Job of the same UID and another name, so the state of the Job stays as it is.
func (r *orphanReleaser) askForJob(ctx context.Context, pod *podcache.Pod, owner *podcache.Owner) (fate, error) {
	ref := jobReference{tracker.KeyOfOwner(pod, owner), owner.Name}
	var job *batchv1.Job
	err := api.ErrGone
	if _, absent := r.absent.Get(ref); !absent {
		job, err = r.cfg.API.Job(ctx, ref.Namespace, ref.name, ref.UID)
	}
	switch {
	case errors.Is(err, api.ErrGone):
		r.absent.Add(ref, nil)
		if r.releasesPodsOf(ref.Key) {
			return mayRelease, nil
		}
		return leaveAlone, nil
	case err != nil:
		return leaveAlone, err
	case !r.cfg.Scope.Manages(job):
		return leaveAlone, nil
	default:
		return retryLater, nil
	}
}

// releasesPodsOf reports whether this executor releases the pods of a Job that is gone. In
// place of the built-in controller, it always does. Beside the built-in controller, which
// releases the pods of all Jobs that are gone, it does so only if the Job is known to have
// been managed.
func (r *orphanReleaser) releasesPodsOf(gone tracker.Key) bool {
	_, wasManaged := r.managed.Get(gone)
	return r.cfg.Scope.ReplaceBuiltin || wasManaged
}

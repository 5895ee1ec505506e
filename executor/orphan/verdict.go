package orphan

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/wire"
)

type verdict int

const (
	notOrphan verdict = iota
	isOrphan
	// unsure: the Job exists and is not in the cache yet; or a Job that is in the cache
	// may adopt the pod. Time will tell.
	unsure
)

func finished(job *batchv1.Job) bool { return wire.FinishedCondition(job) != nil }

// verdict works out whether a pod that has the finalizer has nobody to remove it. Pods
// of other controllers, and of unmanaged Jobs, are left alone (invariant I9), and beside
// the built-in controller also those of which it is not known that they were managed: it
// releases the pods of every Job that is gone and those that nothing controls, so none is
// stuck.
func (r *Releaser) verdict(ctx context.Context, pod *podcache.Pod, own bool) (verdict, error) {
	ref, other := pod.ControllingJob()
	switch {
	case other:
		return notOrphan, nil
	case ref == nil:
		return r.uncontrolled(pod, own), nil
	}
	s, ok := r.cfg.Jobs.Find(ref.UID)
	if !ok {
		return r.askForJob(ctx, pod, ref, nil)
	}
	job := s.Version.Current()
	switch lifecycle := s.Version.Lifecycle(); {
	case job != nil && (!r.cfg.Scope.Manages(job) || !finished(job)), lifecycle == state.GoneUnmanaged:
		return notOrphan, nil
	case job != nil, lifecycle == state.Gone:
		return isOrphan, nil
	default:
		return r.askForJob(ctx, pod, ref, s)
	}
}

// uncontrolled works out the verdict on a pod that nothing controls; own says that a
// managed Job did. A Job that selects it may adopt it. An unmanaged one may have plans of
// its own, unless the executor stands in for the built-in controller, which lets such a
// pod go.
func (r *Releaser) uncontrolled(pod *podcache.Pod, own bool) verdict {
	for _, s := range r.cfg.Jobs.Selecting(pod) {
		job := s.Version.Current()
		switch {
		case job == nil:
		case !r.cfg.Scope.Manages(job):
			if !r.cfg.Scope.ReplaceBuiltin && !finished(job) {
				return notOrphan
			}
		case finished(job):
			own = true
		case job.DeletionTimestamp == nil && !pod.Deleting:
			// The cache may not show yet that the Job is being deleted, and has left its
			// pods behind.
			return unsure
		default:
			own = true
		}
	}
	if own || r.cfg.Scope.ReplaceBuiltin {
		return isOrphan
	}
	return notOrphan
}

// askForJob asks the API server whether a Job exists that the cache does not hold.
func (r *Releaser) askForJob(ctx context.Context, pod *podcache.Pod, ref *podcache.Owner, s *state.Job) (verdict, error) {
	job, err := r.cfg.API.Job(ctx, pod.Namespace(), ref.Name, ref.UID)
	switch {
	case errors.Is(err, api.ErrJobGone):
		own := r.releasesPodsOf(ref.UID)
		if s != nil {
			s.Deleted(nil, own)
		}
		if own {
			return isOrphan, nil
		}
		return notOrphan, nil
	case err != nil:
		return notOrphan, fmt.Errorf("is job %s gone: %w", ref.Name, err)
	case !r.cfg.Scope.Manages(job):
		return notOrphan, nil
	default:
		return unsure, nil
	}
}

// releasesPodsOf reports whether it is on this executor to release the pods of a Job that
// is gone. Beside the built-in controller only if the Job was seen to be managed: the
// built-in one releases them whoever managed the Job. In its place, always.
func (r *Releaser) releasesPodsOf(gone types.UID) bool {
	return r.cfg.Scope.ReplaceBuiltin || r.history.has(gone)
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"jobpolicy.dev/executor/api"
	"jobpolicy.dev/executor/delayqueue"
	"jobpolicy.dev/executor/metrics"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/wire"
)

// orphanDelay is how long a pod waits whose Job is not known: its Job's own
// event may be under way.
const orphanDelay = time.Second

// orphanKey names a pod that may have nobody to take its finalizer away.
type orphanKey struct {
	namespace, name string
	uid             types.UID
	// own: a Job of this executor's was seen to control the pod.
	own bool
}

// orphanQueue holds pods to look at, one entry a pod, with a back-off of its
// own for each.
type orphanQueue struct {
	workqueue.TypedRateLimitingInterface[orphanKey]
	past *pastJobs
}

func newOrphanQueue(base, limit time.Duration, shared *metrics.Shared) orphanQueue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[orphanKey](base, limit)
	return orphanQueue{delayqueue.NewRateLimited(limiter, shared.QueueName(metrics.OrphanPodQueue), shared.Queues), newPastJobs()}
}

func (q orphanQueue) add(pod *podcache.Pod) { q.addKnown(pod, false) }

// addKnown adds a pod of which it is known whether a Job of this executor's
// controlled it.
func (q orphanQueue) addKnown(pod *podcache.Pod, own bool) {
	q.Add(orphanKey{pod.Namespace(), pod.Name, pod.UID, own})
}

// looseSeen queues a pod that nothing controls any more.
func (e *Executor) looseSeen(old, pod *podcache.Pod) {
	e.orphans.addKnown(pod, old != nil && e.ownPod(old))
}

// ownPod reports whether a Job that is this executor's, or was, controls the pod.
func (e *Executor) ownPod(pod *podcache.Pod) bool {
	ref, _ := pod.ControllingJob()
	if ref == nil {
		return false
	}
	if s, ok := e.jobs.find(ref.UID); ok {
		if job := s.current(); job != nil {
			return e.ours(job)
		}
	}
	return e.orphans.past.has(ref.UID)
}

// leavesPods reports whether it is on this executor to release the pods of a Job
// that is gone. Beside the built-in controller only if it has seen that the Job was
// its own: the built-in one releases them whoever managed the Job. In its place,
// always.
func (e *Executor) leavesPods(gone types.UID) bool {
	return e.cfg.ReplaceBuiltin || e.orphans.past.has(gone)
}

// releaseLeftovers queues the pods of a Job that no round will care for any
// more: it is gone, or finished. Pods that nothing controls were left to a Job of
// another manager as long as it selected them; those that our Jobs select are in
// the queue until they are adopted or released.
func (e *Executor) releaseLeftovers(s *jobState, job *batchv1.Job) {
	own := e.ours(job)
	if own {
		e.orphans.past.add(job.UID)
	}
	for _, pod := range s.pods.WithTrackingFinalizer() {
		e.orphans.addKnown(pod, own)
	}
	if own || !e.cfg.ReplaceBuiltin {
		return
	}
	for _, pod := range e.loosePods(job.Namespace) {
		if pod.HasTrackingFinalizer {
			e.orphans.add(pod)
		}
	}
}

// loosePods returns the pods of the namespace that nothing controls, as far as
// the cache shows them.
func (e *Executor) loosePods(namespace string) []*podcache.Pod {
	found, err := e.podInformer.GetIndexer().ByIndex(orphanIndex, namespace)
	if err != nil {
		panic(fmt.Sprintf("the informer lacks the index it was made with: %v", err))
	}
	pods := make([]*podcache.Pod, 0, len(found))
	for _, obj := range found {
		if pod, ok := obj.(*podcache.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (e *Executor) orphanWorker(ctx context.Context) {
	for {
		key, shutdown := e.orphans.Get()
		if shutdown {
			return
		}
		e.releaseOrphan(ctx, key)
		e.orphans.Done(key)
	}
}

// releaseOrphan takes the finalizer from a pod if it is certain that no Job
// needs it. Until that has succeeded, the pod comes back to the queue.
func (e *Executor) releaseOrphan(ctx context.Context, key orphanKey) {
	pod, ok := e.storedPod(key.namespace, key.name)
	if !ok || pod.UID != key.uid || !pod.HasTrackingFinalizer {
		e.orphans.Forget(key)
		return
	}
	verdict, err := e.orphaned(ctx, pod, key.own)
	if err == nil && verdict == orphanYes {
		if err = e.endLate(ctx, pod); err == nil {
			err = e.patchOrphan(ctx, pod)
		}
	}
	switch {
	case err != nil:
		e.log.WarnContext(ctx, "orphan keeps its finalizer for now",
			slog.String("namespace", key.namespace), slog.String("pod", key.name), slog.Any("error", err))
		e.orphans.AddRateLimited(key)
	case verdict == orphanUnsure:
		e.orphans.AddAfter(key, orphanDelay)
	default:
		e.orphans.Forget(key)
	}
}

func (e *Executor) patchOrphan(ctx context.Context, pod *podcache.Pod) (err error) {
	ctx, end := e.tracer.Span(ctx, telemetry.SpanOrphanReleased, telemetry.AttrPodName.String(pod.Name), telemetry.AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	release, err := e.writes.Acquire(ctx, pod.Namespace())
	if err != nil {
		return err
	}
	defer release()
	if ref, _ := pod.ControllingJob(); ref != nil {
		if s, ok := e.jobs.find(ref.UID); ok {
			return e.podCalls(s).Release(ctx, pod)
		}
	}
	return e.api.ReleaseUnowned(ctx, pod)
}

type orphanVerdict int

const (
	orphanNo orphanVerdict = iota
	orphanYes
	// orphanUnsure: the Job exists, and is not in the cache yet; or a Job that
	// is in the cache may adopt the pod. Time will tell.
	orphanUnsure
)

// orphaned works out whether a pod that holds the finalizer has nobody who will
// take it away. Pods of other controllers, and of Jobs that somebody else
// manages, are left alone (invariant I9), and beside the built-in controller also
// those of which it is not known that they were ours: it releases the pods of every
// Job that is gone and those that nothing controls, so none is stuck.
func (e *Executor) orphaned(ctx context.Context, pod *podcache.Pod, own bool) (orphanVerdict, error) {
	ref, other := pod.ControllingJob()
	switch {
	case other:
		return orphanNo, nil
	case ref == nil:
		return e.looseOrphaned(pod, own), nil
	}
	s, ok := e.jobs.find(ref.UID)
	if !ok {
		return e.goneLive(ctx, pod, ref, nil)
	}
	s.mu.Lock()
	job, gone, foreign := s.job, s.gone, s.foreign
	s.mu.Unlock()
	switch {
	case job != nil && (!e.ours(job) || wire.FinishedCondition(job) == nil), foreign:
		return orphanNo, nil
	case job != nil, gone:
		return orphanYes, nil
	default:
		return e.goneLive(ctx, pod, ref, s)
	}
}

// looseOrphaned judges a pod that nothing controls; own says that a Job of ours
// did. A Job that selects it may adopt it. One that is not ours may have plans of
// its own, unless this executor stands in for the built-in controller, which lets
// such a pod go.
func (e *Executor) looseOrphaned(pod *podcache.Pod, own bool) orphanVerdict {
	for _, s := range e.jobs.selecting(pod) {
		job := s.current()
		switch {
		case job == nil:
		case !e.ours(job):
			if !e.cfg.ReplaceBuiltin && wire.FinishedCondition(job) == nil {
				return orphanNo
			}
		case wire.FinishedCondition(job) != nil:
			own = true
		case job.DeletionTimestamp == nil && !pod.Deleting:
			// The cache may not show yet that the Job is going away, and has left
			// its pods behind.
			return orphanUnsure
		default:
			own = true
		}
	}
	if own || e.cfg.ReplaceBuiltin {
		return orphanYes
	}
	return orphanNo
}

// goneLive asks the API server whether a Job that the cache does not hold
// exists.
func (e *Executor) goneLive(ctx context.Context, pod *podcache.Pod, ref *podcache.Owner, s *jobState) (orphanVerdict, error) {
	var job *batchv1.Job
	job, err := e.api.Job(ctx, pod.Namespace(), ref.Name, ref.UID)
	switch {
	case errors.Is(err, api.ErrJobGone):
		own := e.leavesPods(ref.UID)
		if s != nil {
			s.deleted(nil, !own)
		}
		if own {
			return orphanYes, nil
		}
		return orphanNo, nil
	case err != nil:
		return orphanNo, fmt.Errorf("is job %s gone: %w", ref.Name, err)
	case !e.ours(job):
		return orphanNo, nil
	default:
		return orphanUnsure, nil
	}
}

package executor

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/telemetry"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// ours reports whether this executor manages the Job.
func (e *Executor) ours(job *batchv1.Job) bool {
	manager := job.Spec.ManagedBy
	if manager == nil {
		return e.cfg.ReplaceBuiltin
	}
	return *manager == e.cfg.ManagedBy || (e.cfg.ReplaceBuiltin && *manager == batchv1.JobControllerName)
}

// external reports whether the Job names a manager that is neither this executor
// nor the built-in controller, which is the one of a Job that names none.
func (e *Executor) external(job *batchv1.Job) bool {
	manager := job.Spec.ManagedBy
	return manager != nil && *manager != batchv1.JobControllerName && !e.ours(job)
}

// inCare reports whether rounds are run for the Job.
func (e *Executor) inCare(job *batchv1.Job) bool {
	return job != nil && e.ours(job) && wire.FinishedCondition(job) == nil
}

func (e *Executor) jobHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { e.jobSeen(nil, obj.(*batchv1.Job)) },
		UpdateFunc: func(old, obj any) {
			e.jobSeen(old.(*batchv1.Job), obj.(*batchv1.Job))
		},
		DeleteFunc: func(obj any) {
			if job, ok := deletedObject[*batchv1.Job](obj); ok {
				e.jobDeleted(job)
			}
		},
	}
}

func (e *Executor) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { e.podSeen(nil, obj.(*podcache.Pod)) },
		UpdateFunc: func(old, obj any) {
			e.podSeen(old.(*podcache.Pod), obj.(*podcache.Pod))
		},
		DeleteFunc: func(obj any) {
			if pod, ok := deletedObject[*podcache.Pod](obj); ok {
				e.podDeleted(pod)
			}
		},
	}
}

// deletedObject unwraps the tombstone of an object whose deletion was missed.
func deletedObject[T any](obj any) (T, bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	object, ok := obj.(T)
	return object, ok
}

func (e *Executor) jobSeen(old, job *batchv1.Job) {
	if old != nil && old.UID != job.UID {
		e.jobDeleted(old)
		old = nil
	}
	if old == nil && e.external(job) {
		e.metrics.external.WithLabelValues(*job.Spec.ManagedBy).Inc()
	}
	var o observation
	s := e.jobs.with(job.Namespace, job.UID, func(s *jobState) {
		if s.current() == nil && e.podsSynced() && !emptyLedger(&job.Status) {
			// A Job with a past that appears out of order: its pods may be known less
			// well than its status.
			s.due(false, false, true)
		}
		o = s.observe(job, jobWatched)
	})
	e.settleUnanswered(context.Background(), s)
	if wire.FinishedCondition(job) != nil && (old == nil || wire.FinishedCondition(old) == nil) {
		e.releaseLeftovers(s, job)
	}
	resync := old != nil && old.ResourceVersion == job.ResourceVersion
	if !o.news && !resync {
		return
	}
	if o.specChanged {
		s.retryNow()
	}
	e.wake(s, telemetry.CauseJobEvent, o.first || o.specChanged)
}

func (e *Executor) jobDeleted(job *batchv1.Job) {
	s, ok := e.jobs.find(job.UID)
	if !ok {
		return
	}
	e.settleBy(context.Background(), s, job)
	s.deleted(job, !e.ours(job) && !e.cfg.ReplaceBuiltin)
	e.releaseLeftovers(s, job)
	e.jobs.dropUnused(job.Namespace, job.UID)
}

// keepCopy makes the Job's tracker hold the informer's copy of a pod after a new
// list, so that there is one.
func (e *Executor) keepCopy(pod *podcache.Pod, ref *podcache.Owner) {
	if ref == nil {
		return
	}
	if s, ok := e.jobs.find(ref.UID); ok {
		s.pods.Keep(pod)
	}
}

func (e *Executor) podSeen(old, pod *podcache.Pod) {
	if old != nil && old.UID != pod.UID {
		e.podDeleted(old)
		old = nil
	}
	ref, other := pod.ControllingJob()
	if old != nil && old.ResourceVersion == pod.ResourceVersion && pod.ResourceVersion != "" {
		e.keepCopy(pod, ref)
		return // A new list; it tells nothing.
	}
	e.countTracking(old, pod)
	if old != nil {
		e.leaveOldJob(old, pod, ref)
	}
	switch {
	case other:
		return
	case ref == nil:
		e.orphanSeen(old, pod)
	default:
		e.ownedPodSeen(pod, ref)
	}
}

// leaveOldJob tells the Job that controlled the pod before.
func (e *Executor) leaveOldJob(old, pod *podcache.Pod, ref *podcache.Owner) {
	oldRef, _ := old.ControllingJob()
	if oldRef == nil || (ref != nil && ref.UID == oldRef.UID) {
		return
	}
	s, ok := e.jobs.find(oldRef.UID)
	if !ok {
		return
	}
	if !pod.Controlled() && s.matches(pod) {
		// The Job will adopt it again. Between the two, nothing is decided: a pod
		// that is not the Job's would pass for one without the finalizer.
		s.due(true, false, false)
	}
	if s.pods.Left(pod, tracker.Watch) {
		e.wake(s, telemetry.CausePodEvent, false)
	}
	e.jobs.dropUnused(pod.Namespace(), oldRef.UID)
}

func (e *Executor) ownedPodSeen(pod *podcache.Pod, ref *podcache.Owner) {
	var news tracker.News
	s := e.jobs.with(pod.Namespace(), ref.UID, func(s *jobState) { news = s.pods.Observe(pod, tracker.Watch) })
	job := s.current()
	if pod.HasTrackingFinalizer && !e.inCare(job) {
		e.orphans.add(pod)
	}
	switch {
	case news == tracker.Change && pod.Ended():
		s.endHold(&s.createHold)
		e.wake(s, telemetry.CausePodEvent, s.pods.Idle())
	case news == tracker.Change:
		e.wake(s, telemetry.CausePodEvent, s.pods.Idle())
	case news == tracker.AllReady:
		e.wakeLazily(s, telemetry.CausePodEvent, 0)
	case news == tracker.Detail:
		e.wakeLazily(s, telemetry.CausePodEvent, e.cfg.StatusPeriod)
	}
}

// orphanSeen handles a pod that nothing controls: a Job may want it, and if it
// holds the finalizer, somebody must release it.
func (e *Executor) orphanSeen(old, pod *podcache.Pod) {
	if pod.HasTrackingFinalizer {
		e.looseSeen(old, pod)
	}
	if old != nil && old.Labels.Equal(pod.Labels) && !old.Controlled() {
		return
	}
	for _, s := range e.jobs.selecting(pod) {
		if _, known := s.pods.Pod(pod.UID); known {
			// Only own answers have shown it as the Job's: what came after, the watch missed.
			s.pods.Left(pod, tracker.Watch)
		}
		s.due(true, false, false)
		e.wake(s, telemetry.CausePodEvent, false)
	}
}

func (e *Executor) podDeleted(pod *podcache.Pod) {
	e.countTracking(pod, nil)
	ref, _ := pod.ControllingJob()
	if ref == nil {
		return
	}
	s, ok := e.jobs.find(ref.UID)
	if !ok {
		return
	}
	if s.pods.Gone(pod.UID, tracker.Watch) {
		s.endHold(&s.createHold)
		e.wake(s, telemetry.CausePodEvent, s.pods.Idle())
	}
	e.jobs.dropUnused(pod.Namespace(), ref.UID)
}

// countTracking counts terminated pods that get or lose the finalizer.
func (e *Executor) countTracking(old, pod *podcache.Pod) {
	before, after := terminatedAndHeld(old), terminatedAndHeld(pod)
	if !before && after {
		e.metrics.tracking.WithLabelValues("add").Inc()
	}
	if before && !after {
		e.metrics.tracking.WithLabelValues("delete").Inc()
	}
}

func terminatedAndHeld(pod *podcache.Pod) bool {
	return pod != nil && pod.HasTrackingFinalizer && pod.Ended()
}

func controlled(pod *podcache.Pod) bool {
	_, ok := pod.Controller()
	return ok
}

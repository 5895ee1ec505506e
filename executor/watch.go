package executor

import (
	"context"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/shadow"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job")

// watcher records events of Jobs and pods in the state of the Jobs, and enqueues the Jobs.
type watcher struct {
	scope   controller.Scope
	jobs    *tracker.Jobs
	queue   jobQueue
	orphans *orphanReleaser
	report  *reporter
	// statusPeriod: see Config.
	statusPeriod time.Duration
	// ready is nil once the caches are filled.
	ready  func() error
	second *secondController
	// podWatch records how far the watch of pods has come.
	podWatch *podWatch
	comparer *shadow.Comparer
}

func (w *watcher) jobHandler() cache.ResourceEventHandler {
	return controller.Handler(w.jobSeen, w.jobGone)
}

func (w *watcher) podHandler() cache.ResourceEventHandler {
	return controller.Handler(w.podSeen, w.podGone)
}

func (w *watcher) jobSeen(old, job *batchv1.Job) {
	if old != nil && old.UID != job.UID {
		w.jobGone(old)
		old = nil
	}
	initial := old == nil && w.ready() != nil
	if old == nil && w.scope.Unmanaged(job) {
		w.report.metrics.countUnmanaged(*job.Spec.ManagedBy)
	}
	var change tracker.Change
	s := w.jobs.With(tracker.KeyOf(job), func(s *tracker.Job) {
		if s.Current() == nil && w.ready() == nil && !tracker.EmptyLedger(&job.Status) {
			// This Job already counts pods, and it appears after the caches have filled.
			// What is known of its pods may be older than its status.
			s.Mark(tracker.StalePods)
		}
		change = s.Observe(job, tracker.Watch)
		if initial {
			w.podWatch.jobListed(s)
		}
	})
	if !w.scope.Reconciles(job) {
		w.comparer.Gone(job.UID)
	}
	if w.scope.Manages(job) {
		w.tellSecond(s, old, job, initial)
	}
	w.report.resolve(context.Background(), s)
	if wire.FinishedCondition(job) != nil && (old == nil || wire.FinishedCondition(old) == nil) {
		w.orphans.EnqueueLeftovers(s, job)
	}
	resync := old != nil && old.ResourceVersion == job.ResourceVersion
	if change == tracker.Unchanged && !resync {
		return
	}
	if change == tracker.SpecChanged {
		w.queue.EndBackoff(s.Key) // What failed may not fail again.
	}
	var delay time.Duration
	if change == tracker.First && isSuspended(job) && len(job.Status.Conditions) == 0 && job.Status.StartTime == nil {
		delay = firstStatusDelay // There is nothing to do but that status.
	}
	w.queue.enqueueAfter(s, causeJob, highIf(change >= tracker.SpecChanged), delay)
}

// workloadSeen enqueues a Job that waits for a Workload which has changed, or whose controller's Workload
// has: the size of its gang may be another one now.
func (w *watcher) workloadSeen(job *batchv1.Job) {
	s, ok := w.jobs.Find(tracker.KeyOf(job))
	if !ok {
		return
	}
	waits := s.Refusals.Stands(writes.UseWorkload)
	if waits {
		s.StepMayGoOn(tracker.Create)
	}
	if waits || wire.GroupTemplateName(job) != nil {
		w.queue.enqueue(s, causeWorkload, highIf(waits))
	}
}

// policyChanged enqueues a Job whose options may have changed.
func (w *watcher) policyChanged(job *batchv1.Job) {
	if s, ok := w.jobs.Find(tracker.KeyOf(job)); ok {
		w.queue.enqueue(s, causePolicy, controller.PriorityNormal)
	}
}

// nodeChanged enqueues the Jobs that depend on the state of a node; of any node, if name is empty.
func (w *watcher) nodeChanged(name string) {
	for _, s := range w.jobs.All() {
		if s.HasRead(name) {
			w.queue.enqueue(s, causeNode, controller.PriorityNormal)
		}
	}
}

// tellSecond tells w.second about a version of a Job. At the first
// version, it also tells it about the Job's pods that the watch has shown before.
func (w *watcher) tellSecond(s *tracker.Job, old, job *batchv1.Job, initial bool) {
	if initial {
		w.second.JobListed(job, w.report.base.Now())
		return
	}
	w.second.JobSeen(context.Background(), old, job)
	if old != nil {
		return
	}
	for _, pod := range s.WithTrackingFinalizer() {
		w.second.PodSeen(context.Background(), job, pod)
	}
}

func (w *watcher) jobGone(job *batchv1.Job) {
	s, ok := w.jobs.Find(tracker.KeyOf(job))
	if !ok {
		return
	}
	w.report.resolveBy(context.Background(), s, job)
	w.orphans.Remember(job)
	s.Gone(job, w.scope.Manages(job) || w.scope.ReplaceBuiltin)
	w.second.Forget(s.UID)
	w.queue.Forget(s.Key)
	w.comparer.Gone(s.UID)
	w.orphans.EnqueueLeftovers(s, job)
	w.jobs.DropUnused(s.Key)
}

func (w *watcher) podSeen(old, pod *podcache.Pod) {
	if old != nil && old.UID != pod.UID {
		w.podGone(old)
		old = nil
	}
	w.podWatch.recordVersion(pod)
	if old != nil && old.ResourceVersion == pod.ResourceVersion && pod.ResourceVersion != "" {
		// A new list shows the same version again. The tracker takes the informer's copy, so that only one is in memory.
		if s, ok := w.jobs.Controlling(pod); ok {
			s.ObservePod(pod, tracker.Watch)
		}
		return
	}
	ref, other := pod.ControllingJob()
	w.countTracking(old, pod)
	if old != nil {
		w.leaveOldJob(old, pod, ref)
	}
	switch {
	case other:
		return
	case ref == nil:
		w.uncontrolledSeen(old, pod)
	default:
		w.ownedPodSeen(old, pod, ref)
	}
}

func controllingJob(pod *podcache.Pod) *podcache.Owner {
	if pod == nil {
		return nil
	}
	ref, _ := pod.ControllingJob()
	return ref
}

// leaveOldJob takes the pod from the Job that controlled it before.
func (w *watcher) leaveOldJob(old, pod *podcache.Pod, ref *podcache.Owner) {
	s, ok := w.jobs.Controlling(old)
	if !ok || (ref != nil && ref.UID == s.UID) {
		return
	}
	if !pod.Controlled() && s.Matches(pod) {
		// The Job will adopt it again. Decide nothing before that: a pod that is not the Job's
		// would count as a pod without the finalizer.
		s.Mark(tracker.StaleClaims)
	}
	if s.PodLeft(pod, tracker.Watch) {
		w.queue.enqueue(s, causePod, controller.PriorityNormal)
	}
	w.jobs.DropUnused(s.Key)
}

func (w *watcher) ownedPodSeen(old, pod *podcache.Pod, ref *podcache.Owner) {
	var change tracker.Change
	s := w.jobs.With(tracker.KeyOfOwner(pod, ref), func(s *tracker.Job) { change = s.ObservePod(pod, tracker.Watch) })
	job := s.Current()
	oldRef := controllingJob(old)
	gained := oldRef == nil || oldRef.UID != ref.UID
	// After the Job has the pod: the handler of Jobs looks for it there. Before the Job is
	// enqueued: second may say to leave it alone. The pods of the first list are older
	// than this watch and do not count.
	if gained && job != nil && w.ready() == nil && w.scope.Manages(job) {
		w.second.PodSeen(context.Background(), job, pod)
		if s.Current() == nil {
			w.second.Forget(s.UID) // The Job was deleted meanwhile.
		}
	}
	if pod.HasTrackingFinalizer && !w.scope.Reconciles(job) {
		w.orphans.Enqueue(pod)
	}
	switch change {
	case tracker.Relevant:
		if pod.Ended() {
			s.StepMayGoOn(tracker.Create) // It made room for another pod.
		}
		w.queue.enqueue(s, causePod, highIf(s.Idle()))
	case tracker.AllReady:
		w.queue.enqueue(s, causePod, controller.PriorityLow)
	case tracker.Detail:
		w.queue.enqueueAfter(s, causePod, controller.PriorityLow, w.statusPeriod)
	}
}

// uncontrolledSeen handles a pod that nothing controls. A Job may adopt it. If the pod has the
// finalizer, somebody must release it.
func (w *watcher) uncontrolledSeen(old, pod *podcache.Pod) {
	if pod.HasTrackingFinalizer {
		w.orphans.EnqueueUncontrolled(old, pod)
	}
	if old != nil && old.Labels.Equal(pod.Labels) && !old.Controlled() {
		return
	}
	for _, s := range w.jobs.Selecting(pod) {
		if _, known := s.Pod(pod.UID); known {
			// Only the answer to a call of this process showed that the Job controlled the pod.
			// The watch never did.
			s.PodLeft(pod, tracker.Watch)
		}
		s.Mark(tracker.StaleClaims)
		w.queue.enqueue(s, causePod, controller.PriorityNormal)
	}
}

func (w *watcher) podGone(pod *podcache.Pod) {
	w.podWatch.recordVersion(pod)
	w.countTracking(pod, nil)
	s, ok := w.jobs.Controlling(pod)
	if !ok {
		return
	}
	if s.PodGone(pod.UID, tracker.Watch) {
		// A pod that had ended made room before, except in a quota of objects.
		if !pod.Ended() || countQuotaRefuses(s) {
			s.StepMayGoOn(tracker.Create)
		}
		w.queue.enqueue(s, causePod, highIf(s.Idle()))
	}
	w.jobs.DropUnused(s.Key)
}

// countQuotaRefuses reports whether pods are refused for a quota that also counts pods which have ended.
func countQuotaRefuses(s *tracker.Job) bool {
	return slices.ContainsFunc(s.Refusals.Standing(), func(r writes.Refusal) bool {
		return r.Kind == writes.CreatePod && writes.ExceedsQuota(r.Why) && strings.Contains(r.Why, "count/pods")
	})
}

// countTracking counts terminated pods that get or lose the finalizer.
func (w *watcher) countTracking(old, pod *podcache.Pod) {
	before, after := terminatedWithFinalizer(old), terminatedWithFinalizer(pod)
	if !before && after {
		w.report.metrics.tracking.WithLabelValues("add").Inc()
	}
	if before && !after {
		w.report.metrics.tracking.WithLabelValues("delete").Inc()
	}
}

func terminatedWithFinalizer(pod *podcache.Pod) bool {
	return pod != nil && pod.HasTrackingFinalizer && pod.Ended()
}

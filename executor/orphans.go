package executor

import (
	"context"
	"log/slog"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/internal/limit"
	"jobpolicy.dev/executor/internal/telemetry"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
)

const (
	orphanWorkers = 4
	// orphanRetryAfter is when a pod with an unknown Job is looked at again: the event about
	// the Job may be on the way.
	orphanRetryAfter = time.Second
	// maxRememberedJobs bounds how many Jobs are remembered that are managed, or absent. A pod of a
	// forgotten Job counts as a pod of an unknown Job.
	maxRememberedJobs = 10_000
)

// orphanConfig is what an orphanReleaser is made of. All fields are required.
type orphanConfig struct {
	API    *api.Client
	Scope  controller.Scope
	Jobs   *tracker.Jobs
	Pods   controller.PodInformers
	Writes *limit.Pool
	// Calls returns the client for calls about a Job's pods.
	Calls func(*tracker.Job) *api.Pods
}

// An orphanReleaser removes the tracking finalizer from pods where nobody else does: the pod's Job is
// gone or has finished, or nothing controls the pod. It deletes a pod that still runs although its Job
// has finished. A nil orphanReleaser, that of shadow mode, takes none.
type orphanReleaser struct {
	cfg   orphanConfig
	queue *controller.Queue[orphanKey]
	// absent has owner references to Jobs that do not exist, as the API server has said. That
	// stays true, because no later Job has the same UID.
	absent *lru.Cache
	// managed has the keys of managed Jobs that have finished or are gone. A pod may appear
	// after everything else about its Job was dropped.
	managed *lru.Cache
	// refusals have the refused releases of pods that no known Job controls, by UID.
	refusals *lru.Cache
}

// orphanKey names a pod that may be an orphan.
type orphanKey struct {
	namespace, name string
	uid             types.UID
	// wasManaged: a managed Job was seen to control the pod.
	wasManaged bool
}

func (k orphanKey) describe() []slog.Attr {
	return []slog.Attr{slog.String("namespace", k.namespace), slog.String("pod", k.name)}
}

// newOrphanReleaser returns an orphanReleaser. The Controller runs it.
func newOrphanReleaser(base *controller.Controller, cfg orphanConfig) *orphanReleaser {
	r := &orphanReleaser{cfg: cfg, absent: lru.New(maxRememberedJobs), managed: lru.New(maxRememberedJobs), refusals: lru.New(maxRememberedJobs)}
	r.queue = controller.NewQueue(base, controller.Options[orphanKey]{
		Name: telemetry.OrphanPodQueue, Reconcile: r.Reconcile, Describe: orphanKey.describe, MaxInProgress: orphanWorkers,
		Namespace: func(key orphanKey) string { return key.namespace },
		// A webhook that puts a finalizer back may change the pod each time, which is an event.
		EventsWait: true,
	})
	return r
}

// Enqueue queues a pod of a Job that is not reconciled.
func (r *orphanReleaser) Enqueue(pod *podcache.Pod) {
	if r != nil {
		r.enqueue(pod, false)
	}
}

// EnqueueUncontrolled queues a pod that nothing controls. old is its version before; nil
// if there was none.
func (r *orphanReleaser) EnqueueUncontrolled(old, pod *podcache.Pod) {
	if r != nil {
		r.enqueue(pod, old != nil && r.wasManaged(old))
	}
}

// Remember records a Job that is gone or has finished, if it was managed. It is called before
// the state of the Job says so, because that state may be dropped at any moment afterwards.
func (r *orphanReleaser) Remember(job *batchv1.Job) {
	if r != nil && r.cfg.Scope.Manages(job) {
		r.managed.Add(tracker.KeyOf(job), nil)
	}
}

// EnqueueLeftovers queues the pods of a Job that is not reconciled any more, because it is
// gone or has finished.
func (r *orphanReleaser) EnqueueLeftovers(s *tracker.Job, job *batchv1.Job) {
	if r == nil {
		return
	}
	r.Remember(job)
	managed := r.cfg.Scope.Manages(job)
	for _, pod := range s.WithTrackingFinalizer() {
		r.enqueue(pod, managed)
	}
}

func (r *orphanReleaser) enqueue(pod *podcache.Pod, wasManaged bool) {
	r.queue.Enqueue(orphanKey{pod.Namespace(), pod.Name, pod.UID, wasManaged}, causePod, controller.PriorityNormal)
}

// wasManaged reports whether a Job that is or was managed controls the pod.
func (r *orphanReleaser) wasManaged(pod *podcache.Pod) bool {
	ref, _ := pod.ControllingJob()
	if ref == nil {
		return false
	}
	if s, ok := r.cfg.Jobs.Find(tracker.KeyOfOwner(pod, ref)); ok {
		if job := s.Current(); job != nil {
			return r.cfg.Scope.Manages(job)
		}
	}
	_, found := r.managed.Get(tracker.KeyOfOwner(pod, ref))
	return found
}

// Reconcile releases a pod if it is certain that no Job needs it.
func (r *orphanReleaser) Reconcile(ctx context.Context, key orphanKey) (controller.Result, error) {
	pod, ok := r.cfg.Pods.Pod(key.namespace, key.name)
	if !ok || pod.UID != key.uid || !pod.HasTrackingFinalizer {
		return controller.Result{}, nil
	}
	fate, err := r.fate(ctx, pod, key.wasManaged)
	switch {
	case err != nil || fate == leaveAlone:
		return controller.Result{}, err
	case fate == retryLater:
		return controller.Result{RequeueAfter: orphanRetryAfter}, nil
	}
	if err := r.deleteLate(ctx, pod); err != nil {
		return controller.Result{}, err
	}
	return controller.Result{}, r.release(ctx, pod)
}

func (r *orphanReleaser) release(ctx context.Context, pod *podcache.Pod) (err error) {
	ctx, end := r.cfg.API.Tracer.Span(ctx, telemetry.SpanOrphanReleased, telemetry.AttrPodName.String(pod.Name), telemetry.AttrPodUID.String(string(pod.UID)))
	defer func() { end(err) }()
	done, err := r.cfg.Writes.Acquire(ctx, pod.Namespace())
	if err != nil {
		return err
	}
	defer done()
	if s, ok := r.cfg.Jobs.Controlling(pod); ok {
		return r.cfg.Calls(s).Release(ctx, pod)
	}
	refusals, found := r.refusals.Get(pod.UID)
	if !found {
		refusals = &writes.Refusals{}
		r.refusals.Add(pod.UID, refusals)
	}
	return r.cfg.API.ReleaseUnowned(ctx, refusals.(*writes.Refusals), pod)
}

// deleteLate deletes a pod that runs although its Job has finished. Another executor, which ran
// beside this one or has since lost its lease, created the pod when it did not know yet that the
// Job had finished. Nobody else deletes the pod as long as the Job exists. The cache may be
// behind and show a pod as running that has ended. Such a pod is not deleted.
func (r *orphanReleaser) deleteLate(ctx context.Context, pod *podcache.Pod) error {
	s, ok := r.cfg.Jobs.Controlling(pod)
	if !ok || pod.Ended() || pod.Deleting {
		return nil
	}
	job := s.Current()
	if job == nil || job.DeletionTimestamp != nil || !r.cfg.Scope.Manages(job) || wire.FinishedCondition(job) == nil {
		return nil // The deletion of the Job says what becomes of its pods.
	}
	if matches := tracker.PodPolicy(job).Matches; matches != nil && !matches(pod) {
		return nil // The Job does not select it any more. It is released and runs on.
	}
	return r.cfg.Calls(s).DeleteRunning(ctx, job, pod.UID)
}

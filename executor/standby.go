package executor

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// podWatch fills the pod cache: when Run begins, or earlier, while another replica leads.
//
// A cache that was filled earlier may lack the last writes of that replica. So if the first
// decision on a Job would do something, the Job's pods are listed, and the decision is made
// again. This is not needed in two cases:
//
//   - The watcher has got everything that happened before the list of Jobs, which is read when
//     Run begins.
//   - There is nothing to do for the Job. The watch will show what the Job waits for.
type podWatch struct {
	pods    controller.PodInformers
	jobs    *controller.Informers
	log     *slog.Logger
	standby atomic.Bool // StandBy was called.
	handled atomic.Pointer[cache.InformerSynced]

	mu   sync.Mutex
	seen map[string]*progress // by controller.Informers.Key
}

// progress is how much of a pod cache the watcher has received. It receives each change after the
// cache has it. Changes arrive in the order of their versions, except for those of a new list:
// they arrive in another order, but before any later change.
type progress struct {
	jobsListed uint64 // The version of the list of Jobs.
	// cached is a version of the cache that is not older than that; 0: there was none yet.
	cached uint64
	// caughtUp: the watcher has got a pod with a later version than cached.
	caughtUp bool
}

func newPodWatch(pods controller.PodInformers, jobs *controller.Informers, log *slog.Logger) *podWatch {
	return &podWatch{pods: pods, jobs: jobs, log: log, seen: map[string]*progress{}}
}

// StandBy fills the pod cache and keeps it up to date until ctx ends, in goroutines that it
// passes to start. Called before Run, it saves Run the list of pods, which takes long in a
// large cluster. It only reads.
func (e *Executor) StandBy(ctx context.Context, start func(func())) {
	w := e.podWatch
	w.standby.Store(true)
	start(func() { w.pods.Run(ctx) })
	start(func() {
		if cache.WaitForCacheSync(ctx.Done(), w.pods.HasSynced) {
			w.log.InfoContext(ctx, "pod cache filled while standing by")
		}
	})
}

// run gives the watcher the known pods, and all later events. The Jobs were listed before.
func (w *podWatch) run(ctx context.Context, handler cache.ResourceEventHandler) {
	w.mu.Lock()
	for key, version := range w.jobs.Versions() {
		w.seen[key] = &progress{jobsListed: wire.ResourceVersion(version)}
	}
	w.mu.Unlock()
	handled, err := w.pods.AddOrderedEventHandler(handler)
	if err != nil {
		w.log.ErrorContext(ctx, "pods cannot be watched: the pod informer has stopped", slog.Any("error", err))
		return
	}
	w.handled.Store(&handled)
	if !w.standby.Load() {
		w.pods.Run(ctx)
	}
}

// synced reports whether the watcher has got all pods that were known.
func (w *podWatch) synced() bool {
	handled := w.handled.Load()
	return handled != nil && (*handled)()
}

// sweep drops the pods that are certainly gone or that the Job has certainly lost; see
// tracker.Job.SweepPods.
func (w *podWatch) sweep(s *tracker.Job) (awaiting bool) {
	return s.SweepPods(w.cached(s.Namespace), func(pod *podcache.Pod) *podcache.Pod {
		if stored, ok := w.pods.Pod(pod.Namespace(), pod.Name); ok && stored.UID == pod.UID {
			return stored
		}
		return nil
	})
}

// cached is the version of the pod cache of a namespace.
func (w *podWatch) cached(namespace string) uint64 {
	return wire.ResourceVersion(w.pods.In(namespace).GetStore().LastStoreSyncResourceVersion())
}

// recordVersion records that the watcher got a pod.
func (w *podWatch) recordVersion(pod *podcache.Pod) {
	if !w.standby.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.seen[w.pods.Key(pod.Namespace())]
	switch {
	case p == nil || p.caughtUp:
	case p.cached > 0:
		p.caughtUp = wire.ResourceVersion(pod.ResourceVersion) > p.cached
	default:
		if cached := w.cached(pod.Namespace()); cached >= p.jobsListed {
			p.cached = cached
		}
	}
}

// jobListed marks a Job of the first list if the pod cache was filled earlier.
func (w *podWatch) jobListed(s *tracker.Job) {
	if w.standby.Load() {
		s.Mark(tracker.UnverifiedPods)
	}
}

// mustList reports whether the Job's pods must be listed before the decision is applied.
func (w *podWatch) mustList(s *tracker.Job, d *jobpolicyv1.DecideJobResponse) bool {
	if d.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_SETTLED || !s.Clear(tracker.UnverifiedPods) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.seen[w.pods.Key(s.Namespace)]
	return p == nil || !p.caughtUp
}

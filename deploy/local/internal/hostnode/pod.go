package hostnode

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// podDeps are what every pod worker shares.
type podDeps struct {
	runner   *runner
	statuses statusSink
	events   eventSink
	// backoff is the crash back-off that every container starts with.
	backoff crashBackoff
	logger  *slog.Logger
}

// statusSink takes a pod's wanted state in the API; the latest one wins.
type statusSink interface {
	put(podUpdate)
	// forget drops what is still to be written for a pod whose object is gone.
	forget(types.UID)
}

// podWorker runs one pod, from its first sight to the end of its object. All fields but uid, news and view belong to the
// goroutine of serve.
type podWorker struct {
	podDeps
	news mailbox
	uid  types.UID
	// ends receives the runs whose process has ended.
	ends chan endedRun
	view logView

	pod        *corev1.Pod
	containers []*container
	// status is the last one made here, or at first the one in the API.
	status *corev1.PodStatus
	// refused, over and verdict are as in facts.
	refused, over bool
	verdict       *verdict
	// stop is set once nothing is to be started any more.
	stop *stopping
	// gone means that the object is no longer in the API.
	gone bool
	// prepared means that the pod's directories exist.
	prepared bool
	// since is when the pod was taken up first, more exactly than its status can tell.
	since time.Time
	// closed means that status is final.
	closed bool
	// told is what the status sink was last told.
	told podUpdate
}

// mailbox holds the latest version of a pod; older ones are not worth reading.
type mailbox struct {
	bell chan struct{}

	mu   sync.Mutex
	pod  *corev1.Pod
	gone bool
}

func (m *mailbox) put(pod *corev1.Pod, gone bool) {
	m.mu.Lock()
	m.pod, m.gone = pod, m.gone || gone
	m.mu.Unlock()
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

func (m *mailbox) latest() (*corev1.Pod, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pod, m.gone
}

type endedRun struct {
	run     *run
	end     ending
	message string
}

// newPodWorker takes up a pod. Nothing runs before serve.
func newPodWorker(deps podDeps, pod *corev1.Pod, now time.Time) *podWorker {
	w := &podWorker{
		podDeps: deps,
		news:    mailbox{bell: make(chan struct{}, 1), pod: pod},
		ends:    make(chan endedRun),
		uid:     pod.UID,
		pod:     pod,
		status:  &pod.Status,
		since:   now,
	}
	if start := pod.Status.StartTime; !start.IsZero() {
		w.since = start.Time
	}
	w.containers = newContainers(&pod.Spec, deps.backoff)
	restore(w.containers, &pod.Status, now)
	w.told.status = w.status
	w.admit()
	w.view.show(w.containers)
	return w
}

// admit settles the pods that are not to be started at all.
func (w *podWorker) admit() {
	if terminal(w.pod.Status.Phase) {
		w.over, w.closed = true, true
		return
	}
	fresh := w.pod.Status.StartTime.IsZero()
	if fresh && w.pod.DeletionTimestamp != nil {
		w.refused, w.over = true, true
		return
	}
	if w.verdict = unsupported(w.pod); w.verdict != nil {
		w.refused, w.over = true, true
		w.events.warn(w.pod, "", w.verdict.reason, w.verdict.message)
	}
}

// serve works until the pod's object is gone and its processes have ended, and removes its directory then. If ctx ends
// first, the processes are killed and nothing is reported: the next life of the node will find out.
func (w *podWorker) serve(ctx context.Context) {
	for {
		next := w.step(ctx, time.Now())
		if w.gone && w.over {
			w.bury()
			return
		}
		alarm := newAlarm(next)
		select {
		case <-ctx.Done():
			w.abandon()
			return
		case <-w.news.bell:
			w.pod, w.gone = w.news.latest()
		case e := <-w.ends:
			w.noteEnd(e)
		case <-alarm:
		}
	}
}

// newAlarm returns a channel that fires at a time; never, if it is zero. Timers that nobody holds are collected.
func newAlarm(at time.Time) <-chan time.Time {
	if at.IsZero() {
		return nil
	}
	return time.After(time.Until(at))
}

// step does all that is due. next is when more is due; zero if only an update or the end of a process can bring more.
func (w *podWorker) step(ctx context.Context, now time.Time) (next time.Time) {
	if !w.over {
		next = w.progress(ctx, now)
	}
	w.report(now)
	return next
}

func (w *podWorker) progress(ctx context.Context, now time.Time) (next time.Time) {
	w.noticeStop(now)
	if w.stop == nil {
		next = sooner(w.advance(ctx, now), w.deadline())
	}
	if w.stop != nil {
		next = w.windDown(now)
	}
	return next
}

// report passes the pod's status on, if it or the wish to delete the object has changed.
func (w *podWorker) report(now time.Time) {
	w.view.show(w.containers)
	if w.gone {
		return
	}
	w.renew(now)
	next := podUpdate{namespace: w.pod.Namespace, name: w.pod.Name, uid: w.pod.UID, status: w.status, remove: w.removable()}
	if next.status == w.told.status && next.remove == w.told.remove {
		return
	}
	w.told = next
	w.statuses.put(next)
}

func (w *podWorker) renew(now time.Time) {
	if w.closed {
		return
	}
	w.closed = w.over
	made := w.facts(now).status()
	if !apiequality.Semantic.DeepEqual(made, w.status) {
		w.status = made
	}
}

func (w *podWorker) facts(now time.Time) facts {
	return facts{
		pod: w.pod, old: w.status, containers: w.containers,
		refused: w.refused, over: w.over, verdict: w.verdict, since: w.since, now: now,
	}
}

// removable reports whether the object waits for this node to let go of it. With a grace period of 0 it does not: then
// the API server removes it by itself, as soon as it has no finalizer.
func (w *podWorker) removable() bool {
	if !w.over || w.pod.DeletionTimestamp == nil {
		return false
	}
	grace := w.pod.DeletionGracePeriodSeconds
	return grace == nil || *grace > 0
}

func (w *podWorker) noteEnd(e endedRun) { e.run.finish(e.end, e.message) }

// abandon kills everything at once.
func (w *podWorker) abandon() {
	for _, c := range w.alive() {
		c.current.process.signal(syscall.SIGKILL)
	}
	for len(w.alive()) > 0 {
		w.noteEnd(<-w.ends)
	}
	w.view.show(w.containers)
}

// bury removes every trace of the pod.
func (w *podWorker) bury() {
	w.statuses.forget(w.pod.UID)
	if err := os.RemoveAll(w.runner.layout.pod(w.pod.UID)); err != nil {
		w.logger.Warn("pod directory was not removed", "uid", w.pod.UID, "error", err)
	}
}

func (w *podWorker) alive() []*container {
	var list []*container
	for _, c := range w.containers {
		if c.alive() {
			list = append(list, c)
		}
	}
	return list
}

// Package ledger holds what a control plane stored of Jobs and their pods against the
// invariants of ARCHITECTURE.md: each pod counts once, whoever controls the Job and whatever
// happened to the controllers meanwhile.
//
// A Book holds each write to them when it is told of it: the simulated world does so. A History reads
// every version of every object from watches of its own, and holds them to the invariants in the end,
// in the order in which they were stored. The benchmark cannot keep each version of 100,000 pods: it
// enters only the Jobs, and compares counts with what its simulated kubelet did.
package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// A History is every version of every Job and pod of a namespace, watched directly. All
// versions are in one order, that of their resource versions.
type History struct {
	// Stop ends the watches.
	Stop context.CancelFunc

	mu   sync.Mutex
	jobs map[types.UID]*jobLife
	pods map[types.UID]*podLife
	// namespaceGone is when the deletion of the namespace was requested; zero: it was not.
	namespaceGone time.Time
}

// A life is the versions of one object; gone is the version of its deletion.
type life[T metav1.Object] struct {
	versions []T
	gone     uint64
}

type jobLife = life[*batchv1.Job]

type podLife struct{ life[*corev1.Pod] }

// Watch watches a new namespace until Stop is called.
func Watch(client kubernetes.Interface, namespace string) (*History, error) {
	ctx, stop := context.WithCancel(context.Background())
	h := &History{Stop: stop, jobs: map[types.UID]*jobLife{}, pods: map[types.UID]*podLife{}}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		stop()
		return nil, err
	}
	for _, watched := range []cache.WatcherWithContext{
		&cache.ListWatch{WatchFuncWithContext: client.BatchV1().Jobs(namespace).Watch},
		&cache.ListWatch{WatchFuncWithContext: client.CoreV1().Pods(namespace).Watch},
	} {
		// The API server cuts watches that are too slow.
		events, err := watchtools.NewRetryWatcherWithContext(ctx, jobs.ResourceVersion, watched)
		if err != nil {
			stop()
			return nil, err
		}
		go func() {
			for event := range events.ResultChan() {
				h.see(event)
			}
		}()
	}
	return h, nil
}

// SawEnd reports whether the watch has shown the Job finished.
func (h *History) SawEnd(job types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	life := h.jobs[job]
	return life != nil && slices.ContainsFunc(life.versions, IsFinished)
}

func (h *History) see(event watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := event.Type == watch.Deleted
	switch o := event.Object.(type) {
	case *batchv1.Job:
		if h.jobs[o.UID] == nil {
			h.jobs[o.UID] = &jobLife{}
		}
		h.jobs[o.UID].see(o, gone)
	case *corev1.Pod:
		if h.pods[o.UID] == nil {
			h.pods[o.UID] = &podLife{}
		}
		h.pods[o.UID].see(o, gone)
	}
}

func (l *life[T]) see(o T, gone bool) {
	if gone {
		l.gone = version(o)
		return
	}
	l.versions = append(l.versions, o)
}

// NamespaceGoes records that the deletion of the namespace is requested now.
func (h *History) NamespaceGoes() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.namespaceGone = time.Now()
}

// Empty reports whether the deletion of everything that was seen has been seen.
func (h *History) Empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, life := range h.jobs {
		if life.gone == 0 {
			return false
		}
	}
	for _, life := range h.pods {
		if life.gone == 0 {
			return false
		}
	}
	return true
}

// Pods is how many pods a Job ever controlled.
func (h *History) Pods(job types.UID) int { return len(h.podsOf(job)) }

// AllPods is how many pods were seen.
func (h *History) AllPods() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pods)
}

// podsOf returns the lives of the pods that a Job ever controlled.
func (h *History) podsOf(job types.UID) []*podLife {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lives []*podLife
	for _, life := range h.pods {
		if OwnedBy(life.versions[0], job) {
			lives = append(lives, life)
		}
	}
	return lives
}

// release is the version with which a pod lost the finalizer, and the pod at that time;
// 0 if it still has it, or never had it. If a deleted pod waits only for its finalizer,
// its deletion is that version.
func (l *podLife) release() (at uint64, released *corev1.Pod) {
	for i, pod := range l.versions {
		if i > 0 && Held(l.versions[i-1]) && !Held(pod) {
			return version(pod), pod
		}
	}
	if last := l.versions[len(l.versions)-1]; Held(last) && l.gone != 0 {
		return l.gone, last
	}
	return 0, nil
}

// last is the pod as it was when it lost the finalizer, or as last seen.
func (l *podLife) last() *corev1.Pod {
	if _, pod := l.release(); pod != nil {
		return pod
	}
	return l.versions[len(l.versions)-1]
}

// deletedBeforeItEnded reports whether somebody could see the pod being deleted while it
// had not ended.
func (l *podLife) deletedBeforeItEnded() bool {
	return slices.ContainsFunc(l.versions, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil && !Ended(pod)
	})
}

// Stopped is how many pods of a Job somebody deleted before they had ended.
func (h *History) Stopped(job types.UID) int {
	n := 0
	for _, life := range h.podsOf(job) {
		if life.deletedBeforeItEnded() || life.gone != 0 && !Ended(life.versions[len(life.versions)-1]) {
			n++
		}
	}
	return n
}

func version(o metav1.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resource version %q: %v", o.GetResourceVersion(), err))
	}
	return n
}

// Problems says where a history breaks an invariant: it enters all versions into a Book, in the
// order in which they were stored.
func (h *History) Problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	book := NewBook()
	if !h.namespaceGone.IsZero() {
		book.NamespaceGoes(h.namespaceGone)
	}
	var entries []entry
	for uid, life := range h.jobs {
		entries = append(entries, life.entries(book.Job, func() []Problem { book.JobGone(uid); return nil })...)
	}
	for uid, life := range h.pods {
		entries = append(entries, life.entries(book.Pod, func() []Problem { return book.PodGone(uid) })...)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.version, b.version) })
	var found []string
	for _, e := range entries {
		for _, problem := range e.enter() {
			found = append(found, fmt.Sprintf("Job %s: %s", problem.Job.Name, problem))
		}
	}
	return found
}

// An entry is what a Book is told of one version.
type entry struct {
	version uint64
	enter   func() []Problem
}

func (l *life[T]) entries(enter func(T) []Problem, gone func() []Problem) []entry {
	var all []entry
	for _, o := range l.versions {
		all = append(all, entry{version(o), func() []Problem { return enter(o) }})
	}
	if l.gone != 0 {
		all = append(all, entry{l.gone, gone})
	}
	return all
}

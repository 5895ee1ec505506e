package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// kubeletWriters is how many writes the simulated kubelet has in flight.
const kubeletWriters = 32

// A script says how the pods of a namespace run and end.
type script struct {
	// podTime is how long a pod runs.
	podTime time.Duration
	// phase is the phase in which the pod ends.
	phase corev1.PodPhase
	// hold keeps every pod running until endHeld ends it.
	hold bool
}

// A kubelet simulates the nodes. It makes pods run and end as the script of their
// namespace says. It remembers what it did, and the benchmark compares the statuses of
// Jobs with that. It starts no process, keeps a hundred bytes a pod, and binds pods
// to no node: no Job controller looks at the node.
type kubelet struct {
	client kubernetes.Interface
	todo   *backlog

	mu         sync.Mutex
	namespaces map[string]*namespaceState
	err        error // the first write that failed
}

// A namespaceState is a namespace with all pods that were ever seen in it.
type namespaceState struct {
	script
	pods map[types.UID]*pod
	jobs map[types.UID]*jobPods
	held []*pod // running until endHeld ends them
	total
	changed time.Time
}

// jobPods are the pods of one Job.
type jobPods struct {
	total
	firstSeen, lastEnd, lastRelease time.Time
	// indexes counts the pods of each index.
	indexes map[int32]int
}

// total counts pods by their state.
type total struct {
	seen, running, succeeded, failed int
	// finalizers is how many hold the tracking finalizer; stored is how many the API server has, and most how many it
	// had at a time.
	finalizers, stored, most int
}

func (t total) ended() int { return t.succeeded + t.failed }

// A pod is the kubelet's record of a pod.
type pod struct {
	namespace, name string
	uid             types.UID
	job             *jobPods
	phase           corev1.PodPhase
	tracked, gone   bool
	// ended is when the write of the last phase was sent; released is when the
	// finalizer was seen to be gone.
	ended, released time.Time
}

func newKubelet(client kubernetes.Interface) *kubelet {
	return &kubelet{client: client, todo: newBacklog(kubeletWriters), namespaces: map[string]*namespaceState{}}
}

// run simulates until ctx ends.
func (k *kubelet) run(ctx context.Context) {
	defer k.todo.close()
	follow(ctx, k.client, k.client.CoreV1().Pods(metav1.NamespaceAll), &corev1.Pod{}, seer[*corev1.Pod](func(p *corev1.Pod, gone bool) { k.see(ctx, p, gone) }))
}

// play sets the script of a namespace, before its first pod.
func (k *kubelet) play(namespace string, s script) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.namespaces[namespace] = &namespaceState{script: s, pods: map[types.UID]*pod{}, jobs: map[types.UID]*jobPods{}, changed: time.Now()}
}

// forget drops a namespace. Whatever is still seen of its pods is ignored.
func (k *kubelet) forget(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.namespaces, namespace)
}

// see handles a version of a pod, and starts a new pod.
func (k *kubelet) see(ctx context.Context, seen *corev1.Pod, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.namespaces[seen.Namespace]
	if st == nil {
		return
	}
	p := st.pods[seen.UID]
	if p == nil {
		p = st.enter(seen)
		k.todo.add(func() { k.start(ctx, st, p) })
	}
	if gone && !p.gone {
		p.gone = true
		st.count(p, func(t *total) { t.stored-- })
	}
	st.trace(p, !gone && slices.Contains(seen.Finalizers, batchv1.JobTrackingFinalizer))
	if seen.DeletionTimestamp != nil && !gone && seen.DeletionGracePeriodSeconds != nil && *seen.DeletionGracePeriodSeconds > 0 {
		k.todo.add(func() { k.remove(ctx, p) })
	}
}

func (st *namespaceState) enter(seen *corev1.Pod) *pod {
	p := &pod{namespace: seen.Namespace, name: seen.Name, uid: seen.UID, phase: corev1.PodPending}
	st.pods[seen.UID] = p
	owner := metav1.GetControllerOfNoCopy(seen)
	if owner == nil {
		owner = &metav1.OwnerReference{}
	}
	p.job = st.jobs[owner.UID]
	if p.job == nil {
		p.job = &jobPods{indexes: map[int32]int{}, firstSeen: time.Now()}
		st.jobs[owner.UID] = p.job
	}
	if index, err := strconv.ParseInt(seen.Annotations[batchv1.JobCompletionIndexAnnotation], 10, 32); err == nil {
		p.job.indexes[int32(index)]++
	}
	st.count(p, func(t *total) {
		t.seen++
		t.stored++
		t.most = max(t.most, t.stored)
	})
	return p
}

// count changes the totals that a pod is part of.
func (st *namespaceState) count(p *pod, change func(*total)) {
	change(&st.total)
	change(&p.job.total)
	st.changed = time.Now()
}

// trace follows the finalizer of a pod.
func (st *namespaceState) trace(p *pod, tracked bool) {
	switch {
	case tracked && !p.tracked:
		p.tracked = true
		st.count(p, func(t *total) { t.finalizers++ })
	case !tracked && p.tracked:
		p.tracked, p.released = false, time.Now()
		p.job.lastRelease = p.released
		st.count(p, func(t *total) { t.finalizers-- })
	}
}

// start makes a pod run, and end as its script says.
func (k *kubelet) start(ctx context.Context, st *namespaceState, p *pod) {
	if !k.write(ctx, p, runningStatus()) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.phase = corev1.PodRunning
	st.count(p, func(t *total) { t.running++ })
	if st.hold {
		st.held = append(st.held, p)
		return
	}
	phase := st.phase
	time.AfterFunc(st.podTime, func() { k.todo.add(func() { k.end(ctx, st, p, phase) }) })
}

// endHeld ends held pods: n of them, or all when n is negative.
func (k *kubelet) endHeld(ctx context.Context, namespace string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.namespaces[namespace]
	if n < 0 {
		st.hold, n = false, len(st.held)
	}
	n = min(n, len(st.held))
	phase := st.phase
	for _, p := range st.held[:n] {
		k.todo.add(func() { k.end(ctx, st, p, phase) })
	}
	st.held = st.held[n:]
}

func (k *kubelet) end(ctx context.Context, st *namespaceState, p *pod, phase corev1.PodPhase) {
	sent := time.Now()
	if !k.write(ctx, p, endedStatus(phase)) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.phase, p.ended, p.job.lastEnd = phase, sent, sent
	st.count(p, func(t *total) {
		t.running--
		if phase == corev1.PodFailed {
			t.failed++
			return
		}
		t.succeeded++
	})
}

// remove ends the deletion of a pod.
func (k *kubelet) remove(ctx context.Context, p *pod) {
	now := int64(0)
	err := k.client.CoreV1().Pods(p.namespace).Delete(ctx, p.name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.uid},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		k.fail(ctx, fmt.Errorf("delete pod: %w", err))
	}
}

// write patches a status. It reports whether the pod has that status now.
func (k *kubelet) write(ctx context.Context, p *pod, status corev1.PodStatus) bool {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": status})
	if err == nil {
		_, err = k.client.CoreV1().Pods(p.namespace).Patch(ctx, p.name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) {
		k.fail(ctx, fmt.Errorf("write status of pod: %w", err))
	}
	return err == nil
}

// fail keeps the first error. An error because the kubelet itself ends does not count.
func (k *kubelet) fail(ctx context.Context, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil && ctx.Err() == nil {
		k.err = err
	}
}

func runningStatus() corev1.PodStatus {
	now := metav1.Now()
	return corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
	}
}

func endedStatus(phase corev1.PodPhase) corev1.PodStatus {
	now := metav1.Now()
	end := &corev1.ContainerStateTerminated{StartedAt: now, FinishedAt: now}
	if phase == corev1.PodFailed {
		end.ExitCode = 1
	}
	return corev1.PodStatus{
		Phase:             phase,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: now}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Terminated: end}}},
	}
}

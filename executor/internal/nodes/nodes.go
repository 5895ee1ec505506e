// Package nodes says which nodes are Ready. Nodes are read only from when a Job asks for it (options.termination_deadline_node).
//
// The executor may have no right to read them. Then their state is not known, and all else goes on.
package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Nodes are the nodes of the cluster. They are made by New and run once.
type Nodes struct {
	client   kubernetes.Interface
	log      *slog.Logger
	changed  func(name string)
	informer cache.SharedIndexInformer

	start func() // Closes asked, once.
	asked chan struct{}
	// read has an item when nodes can be read that could not be before.
	read chan struct{}
	// failing: the last list or watch has failed, so the cache may be out of date.
	failing atomic.Bool
	told    sync.Once // that the right is missing.
}

// New returns Nodes. changed is called when the state of a node has become another one, with an empty name if it may
// be that of any node.
func New(client kubernetes.Interface, log *slog.Logger, changed func(name string)) (*Nodes, error) {
	n := &Nodes{client: client, log: log, changed: changed, asked: make(chan struct{}), read: make(chan struct{}, 1)}
	n.start = sync.OnceFunc(func() { close(n.asked) })
	n.informer = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, o)
		},
		WatchFuncWithContext: n.watch,
	}, client), &corev1.Node{}, 0, cache.Indexers{})
	if err := n.informer.SetTransform(onlyReady); err != nil {
		return nil, fmt.Errorf("node transform: %w", err)
	}
	if err := n.informer.SetWatchErrorHandlerWithContext(n.readFailed); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	_, err := n.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if node, ok := obj.(*corev1.Node); ok && !first { // Run says when the first list is complete.
				changed(node.Name)
			}
		},
		UpdateFunc: func(old, obj any) {
			if before, after := old.(*corev1.Node), obj.(*corev1.Node); wire.NodeState(before) != wire.NodeState(after) {
				changed(after.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				changed(name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("node handler: %w", err)
	}
	return n, nil
}

// Watch has nodes read from now on.
func (n *Nodes) Watch() { n.start() }

// State is the state of the node of that name; unspecified while nodes cannot be read, or have not been yet.
func (n *Nodes) State(name string) jobpolicyv1.NodeState {
	if n.failing.Load() || !n.informer.HasSynced() {
		return jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED
	}
	obj, exists, err := n.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return wire.NodeState(nil)
	}
	return wire.NodeState(obj.(*corev1.Node))
}

// Run waits for Watch, fills the cache and keeps it up to date until ctx ends.
func (n *Nodes) Run(ctx context.Context) {
	select {
	case <-n.asked:
	case <-ctx.Done():
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { n.informer.RunWithContext(ctx) })
	for {
		select {
		case <-n.read:
		case <-ctx.Done():
			return
		}
		if cache.WaitForCacheSync(ctx.Done(), n.informer.HasSynced) {
			n.changed("")
		}
	}
}

func (n *Nodes) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := n.client.CoreV1().Nodes().Watch(ctx, o)
	if err == nil && (n.failing.Swap(false) || !n.informer.HasSynced()) {
		select {
		case n.read <- struct{}{}:
		default:
		}
	}
	return w, err
}

// readFailed handles a failed list or watch. The informer tries again, at most every minute, so the right may be
// granted at any time.
func (n *Nodes) readFailed(ctx context.Context, _ *cache.Reflector, err error) {
	if !n.failing.Swap(true) {
		n.changed("")
	}
	if !apierrors.IsForbidden(err) {
		n.log.DebugContext(ctx, "nodes not read", slog.Any("error", err)) // The informers of other objects fail in the same way, and say so.
		return
	}
	n.told.Do(func() {
		n.log.WarnContext(ctx, "no right to read nodes, so job.terminationDeadlineNode gives up no pod", slog.Any("error", err))
	})
}

// onlyReady keeps of a node its name and the condition Ready.
func onlyReady(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion}}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			kept.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return kept, nil
}

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
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/clock"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// delays are those before nodes are read anew after a list or watch has failed.
var delays = clock.Limits{First: time.Second, Max: time.Minute}

// Nodes are the nodes of the cluster. They are made by New and run once.
type Nodes struct {
	client  kubernetes.Interface
	log     *slog.Logger
	changed func(name string)

	start func() // Closes asked, once.
	asked chan struct{}
	// current has what is known of nodes; nil while they cannot be read, or have not been yet. After a failure the next one
	// begins empty: what the last one has may be out of date until the new list is complete.
	current atomic.Pointer[cache.Store]
	told    sync.Once // that the right is missing.
}

// New returns Nodes. changed is called when the state of a node has become another one, with an empty name if it may
// be that of any node.
func New(client kubernetes.Interface, log *slog.Logger, changed func(name string)) *Nodes {
	n := &Nodes{client: client, log: log, changed: changed, asked: make(chan struct{})}
	n.start = sync.OnceFunc(func() { close(n.asked) })
	return n
}

// newInformer returns an informer that calls failed when a list or watch has failed.
func (n *Nodes) newInformer(failed func()) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return n.client.CoreV1().Nodes().List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return n.client.CoreV1().Nodes().Watch(ctx, o)
		},
	}, n.client), &corev1.Node{}, 0, cache.Indexers{})
	if err := informer.SetTransform(onlyReady); err != nil {
		return nil, fmt.Errorf("node transform: %w", err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		n.tell(ctx, err)
		failed()
	}); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if node, ok := obj.(*corev1.Node); ok && !first { // read says when the first list is complete.
				n.changed(node.Name)
			}
		},
		UpdateFunc: func(old, obj any) {
			if before, after := old.(*corev1.Node), obj.(*corev1.Node); wire.NodeState(before) != wire.NodeState(after) {
				n.changed(after.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				n.changed(name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("node handler: %w", err)
	}
	return informer, nil
}

// Watch has nodes read from now on.
func (n *Nodes) Watch() { n.start() }

// State is the state of the node of that name; unspecified while nodes cannot be read, or have not been yet.
func (n *Nodes) State(name string) jobpolicyv1.NodeState {
	store := n.current.Load()
	if store == nil {
		return jobpolicyv1.NodeState_NODE_STATE_UNSPECIFIED
	}
	obj, exists, err := (*store).GetByKey(name)
	if err != nil || !exists {
		return wire.NodeState(nil)
	}
	return wire.NodeState(obj.(*corev1.Node))
}

// Run waits for Watch, and then keeps up to date what is known of nodes until ctx ends. The right to read them may be
// granted at any time.
func (n *Nodes) Run(ctx context.Context) {
	select {
	case <-n.asked:
	case <-ctx.Done():
		return
	}
	var backoff clock.Backoff
	for ctx.Err() == nil {
		begun := time.Now()
		if err := n.read(ctx); err != nil {
			n.log.ErrorContext(ctx, "nodes not read", slog.Any("error", err))
			return
		}
		if time.Since(begun) > 2*delays.Max {
			backoff.Reset()
		}
		select {
		case <-time.After(backoff.Failed(delays)):
		case <-ctx.Done():
		}
	}
}

// read reads nodes until a list or watch fails, or ctx ends.
func (n *Nodes) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer, err := n.newInformer(cancel)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	n.current.Store(new(informer.GetStore()))
	n.changed("")
	<-ctx.Done()
	n.current.Store(nil)
	n.changed("")
	return nil
}

// tell logs why nodes cannot be read: once, if the right is missing.
func (n *Nodes) tell(ctx context.Context, err error) {
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

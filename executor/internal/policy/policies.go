package policy

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/options"
)

// Config is what Policies are made of.
type Config struct {
	// Client reads JobPolicies and writes their status.
	Client dynamic.Interface
	// Kubernetes reads namespaces.
	Kubernetes kubernetes.Interface
	// Namespaces are those whose policies are read; none: all. With them, annotations of namespaces are not read.
	Namespaces []string
	// Bounds are the operator's limits, of policies and of options in annotations.
	Bounds options.Bounds
	// ClusterGroups are the operator's groups of CronJobs of all namespaces. Their numbers take the place of those in
	// policies and annotations.
	ClusterGroups options.ClusterGroups
	// Scope says whose policies count as used.
	Scope  controller.Scope
	Logger *slog.Logger
}

// Policies are the JobPolicies of the cluster. They are made by New and run once. The nil Policies
// know none.
type Policies struct {
	cfg        Config
	policies   *controller.Informers
	namespaces cache.SharedIndexInformer // nil with Config.Namespaces
	// unreadable says, by the keys of policies, why JobPolicies cannot be read; nil: they can, or it is not
	// known yet. The map is fixed before Run.
	unreadable map[string]*atomic.Pointer[string]

	followed []followed // fixed before Run
}

// New returns Policies. Nothing is read before Run.
func New(cfg Config) (*Policies, error) {
	p := &Policies{cfg: cfg, unreadable: map[string]*atomic.Pointer[string]{}}
	var err error
	p.policies = controller.NewInformers(cfg.Namespaces, func(namespace string) cache.SharedIndexInformer {
		i := dynamicinformer.NewFilteredDynamicInformer(cfg.Client, Resource, namespace, 0, cache.Indexers{}, nil).Informer()
		unreadable := &atomic.Pointer[string]{}
		p.unreadable[namespace] = unreadable
		readFailed := func(ctx context.Context, _ *cache.Reflector, err error) { p.readFailed(ctx, unreadable, err) }
		if failed := i.SetWatchErrorHandlerWithContext(readFailed); failed != nil {
			err = failed
		}
		return i
	})
	if err != nil {
		return nil, fmt.Errorf("policies: %w", err)
	}
	if err := p.policies.SetTransform(p.decode); err != nil {
		return nil, fmt.Errorf("policy transform: %w", err)
	}
	if err := p.policies.AddEventHandler(controller.Handler(p.policySeen, p.policyGone)); err != nil {
		return nil, fmt.Errorf("policy handler: %w", err)
	}
	if len(cfg.Namespaces) > 0 {
		return p, nil // Rights in these namespaces do not include watching Namespaces.
	}
	return p, p.addNamespaces()
}

func (p *Policies) addNamespaces() error {
	p.namespaces = coreinformers.NewNamespaceInformer(p.cfg.Kubernetes, 0, cache.Indexers{})
	if err := p.namespaces.SetTransform(onlyDefault); err != nil {
		return fmt.Errorf("namespace transform: %w", err)
	}
	if _, err := p.namespaces.AddEventHandler(controller.Handler(p.namespaceSeen, nil)); err != nil {
		return fmt.Errorf("namespace handler: %w", err)
	}
	return nil
}

// onlyDefault keeps of a namespace its identity and the annotation, without spaces around the name.
func onlyDefault(obj any) (any, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name, UID: ns.UID, ResourceVersion: ns.ResourceVersion}}
	if name, ok := ns.Annotations[wire.DefaultPolicy]; ok {
		kept.Annotations = map[string]string{wire.DefaultPolicy: strings.TrimSpace(name)}
	}
	return kept, nil
}

// Run fills the caches and keeps them up to date until ctx ends.
func (p *Policies) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { p.policies.Run(ctx) })
	for key := range p.unreadable {
		running.Go(func() { p.tellWhenServed(ctx, key) })
	}
	if p.namespaces != nil {
		running.Go(func() { p.namespaces.RunWithContext(ctx) })
	}
	running.Wait()
}

// servedPeriod is how often is looked whether JobPolicies can be read by now.
const servedPeriod = time.Second

// tellWhenServed tells those that name a policy when the JobPolicies of an informer can be read that could not:
// what is wrong with a policy that still does not exist is another thing now.
func (p *Policies) tellWhenServed(ctx context.Context, key string) {
	synced := func(context.Context) (bool, error) { return p.policies.In(key).HasSynced(), nil }
	if utilwait.PollUntilContextCancel(ctx, servedPeriod, true, synced) == nil && p.unreadable[key].Load() != nil {
		p.tellAll(key)
	}
}

// Settled reports whether it is known which options objects have: the caches are filled, except for
// JobPolicies that cannot be read.
func (p *Policies) Settled() bool {
	if p == nil {
		return true
	}
	for key, unreadable := range p.unreadable {
		if unreadable.Load() == nil && !p.policies.In(key).HasSynced() {
			return false
		}
	}
	return p.namespaces == nil || p.namespaces.HasSynced()
}

// readFailed handles a failed list or watch of an informer of JobPolicies. The informer tries again, at most every
// minute, so JobPolicies may be served, or the right be granted, at any time.
func (p *Policies) readFailed(ctx context.Context, unreadable *atomic.Pointer[string], err error) {
	var why string
	switch {
	case apierrors.IsNotFound(err):
		why = "the API server does not serve (is its CustomResourceDefinition installed?)"
	case apierrors.IsForbidden(err):
		why = "the executor may not read: " + err.Error()
	default:
		// The informers of other objects fail in the same way, and say so.
		p.cfg.Logger.DebugContext(ctx, "JobPolicies not read", slog.Any("error", err))
		return
	}
	if before := unreadable.Swap(&why); before == nil || *before != why {
		p.cfg.Logger.InfoContext(ctx, "no JobPolicies", slog.String("reason", strings.TrimPrefix(why, "the ")))
	}
}

// get returns the policy of that name; nil with a reason if there is none.
func (p *Policies) get(namespace, name string) (*object, string) {
	obj, exists, err := p.policies.Get(namespace, name)
	switch why := p.unreadable[p.policies.Key(namespace)].Load(); {
	case err == nil && exists:
		return obj.(*object), ""
	case why != nil && !p.policies.In(namespace).HasSynced():
		return nil, "which " + *why
	}
	return nil, fmt.Sprintf("which does not exist in namespace %q", namespace)
}

// defaultOf is the name of the policy for those in the namespace that name none; empty: there is none.
func (p *Policies) defaultOf(namespace string) string {
	if p == nil || p.namespaces == nil {
		return ""
	}
	obj, exists, err := p.namespaces.GetStore().GetByKey(namespace)
	if err != nil || !exists {
		return ""
	}
	return obj.(*corev1.Namespace).Annotations[wire.DefaultPolicy]
}

// all are the policies in the caches, in no order.
func (p *Policies) all() iter.Seq[*object] {
	return func(yield func(*object) bool) {
		for _, obj := range p.policies.List() {
			if !yield(obj.(*object)) {
				return
			}
		}
	}
}

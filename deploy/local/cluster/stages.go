package cluster

import (
	"context"
	"path/filepath"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// layoutStages lists the components that the options ask for, in the order in
// which they start.
func (l *layout) layoutStages() [][]*component {
	first := []*component{l.etcd()}
	if l.enclosed() {
		first = append(first, l.registry(), l.containerd())
	}
	if !l.opts.WithoutEngine {
		first = append(first, l.engine())
	}
	last := []*component{l.controllerManager()}
	if !l.opts.WithoutScheduler {
		last = append(last, l.scheduler())
	}
	switch {
	case l.enclosed():
		last = append(last, l.kubelet(), l.kubeProxy(), l.coreDNS())
	case !l.opts.WithoutNode:
		last = append(last, l.node())
	}
	stages := [][]*component{first, {l.apiServer()}, last}
	if l.enclosed() {
		stages = append([][]*component{{l.namespaces()}}, stages...)
	}
	if !l.opts.WithoutExecutor {
		stages = append(stages, []*component{l.executor()})
	}
	return stages
}

// local completes a component that is a subcommand of the multi-call binary.
func (l *layout) local(comp *component, subcommand string) *component {
	comp.path, comp.subcommand = l.opts.LocalPath, subcommand
	return l.named(comp)
}

// kubernetes completes a component that is a server of Kubernetes: one in dir, or a subcommand
// of the multi-call binary if dir is empty.
func (l *layout) kubernetes(comp *component) *component {
	comp.path, comp.subcommand = l.kubernetesProgram(l.opts.KubernetesDir, comp.name)
	return l.named(comp)
}

func (l *layout) kubernetesProgram(dir, name string) (path, subcommand string) {
	if dir == "" {
		return l.opts.LocalPath, name
	}
	return filepath.Join(dir, name), ""
}

// named adds what follows from the component's name.
func (l *layout) named(comp *component) *component {
	comp.extraArgs = l.opts.ExtraArgs[comp.name]
	comp.env = l.opts.ExtraEnv[comp.name]
	comp.logFile = l.logFile(comp.name)
	if comp.namespaces == 0 {
		comp.inside = l.inside
	}
	return comp
}

func (l *layout) etcd() *component {
	return l.local(&component{
		name:      Etcd,
		listeners: []string{portEtcdClient, portEtcdPeer},
		args:      l.etcdArgs,
		ready:     l.serverProbe(portEtcdClient, "/health", l.keys.EtcdCA, l.keys.EtcdClient),
	}, "etcd")
}

func (l *layout) apiServer() *component {
	return l.kubernetes(&component{
		name:      APIServer,
		listeners: []string{portAPIServer},
		prepare:   l.writeKubeconfigs,
		args:      l.apiServerArgs,
		ready:     l.serverProbe(portAPIServer, "/readyz?verbose", l.keys.ClusterCA, l.keys.Admin),
		afterFirst: func(ctx context.Context) error {
			client, err := l.client()
			if err != nil {
				return err
			}
			return l.grant(ctx, client)
		},
	})
}

func (l *layout) controllerManager() *component {
	return l.kubernetes(&component{
		name:      ControllerManager,
		listeners: []string{portControllerManager},
		args:      l.controllerManagerArgs,
		ready:     l.serverProbe(portControllerManager, "/healthz", l.keys.ClusterCA, pki.Pair{}),
	})
}

func (l *layout) scheduler() *component {
	return l.kubernetes(&component{
		name:      Scheduler,
		listeners: []string{portScheduler},
		prepare:   l.writeSchedulerConfig,
		args:      l.schedulerArgs,
		ready:     l.serverProbe(portScheduler, "/readyz", l.keys.ClusterCA, pki.Pair{}),
	})
}

func (l *layout) node() *component {
	return l.local(&component{
		name:      Node,
		listeners: []string{portKubelet},
		args:      l.nodeArgs,
		ready:     l.nodeProbe,
	}, "node")
}

func (l *layout) engine() *component {
	return l.named(&component{
		name:      Engine,
		path:      l.opts.EnginePath,
		listeners: []string{portEngineGRPC, portEngineHTTP},
		args:      l.engineArgs,
		ready:     l.serverProbe(portEngineHTTP, "/readyz", "", pki.Pair{}),
	})
}

func (l *layout) executor() *component {
	return l.named(&component{
		name:      Executor,
		path:      l.opts.ExecutorPath,
		listeners: []string{portExecutorHTTP},
		args:      l.executorArgs,
		ready:     l.serverProbe(portExecutorHTTP, "/readyz", "", pki.Pair{}),
	})
}

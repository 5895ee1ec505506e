package cluster

import (
	"context"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// layoutStages lists the components that the options ask for, in the order in
// which they start.
func (c *Cluster) layoutStages() [][]*component {
	first := []*component{c.etcd()}
	if c.enclosed() {
		first = append(first, c.registry(), c.containerd())
	}
	if !c.opts.WithoutEngine {
		first = append(first, c.engine())
	}
	last := []*component{c.controllerManager()}
	if !c.opts.WithoutScheduler {
		last = append(last, c.scheduler())
	}
	switch {
	case c.enclosed():
		last = append(last, c.kubelet(), c.kubeProxy(), c.coreDNS())
	case !c.opts.WithoutNode:
		last = append(last, c.node())
	}
	stages := [][]*component{first, {c.apiServer()}, last}
	if c.enclosed() {
		stages = append([][]*component{{c.namespaces()}}, stages...)
	}
	if !c.opts.WithoutExecutor {
		stages = append(stages, []*component{c.executor()})
	}
	return stages
}

// local completes a component that is a subcommand of the multi-call binary.
func (l *layout) local(comp *component, subcommand string) *component {
	comp.path = l.opts.LocalPath
	args := comp.args
	comp.args = func() []string { return append([]string{subcommand}, args()...) }
	return l.named(comp)
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
		ready: func(ctx context.Context) error {
			url := "https://" + l.ports.address(portEtcdClient) + "/health"
			return httpProbe(url, l.keys.EtcdCA, l.keys.EtcdClient)(ctx)
		},
	}, "etcd")
}

func (l *layout) apiServer() *component {
	return l.local(&component{
		name:      APIServer,
		listeners: []string{portAPIServer},
		prepare:   l.writeKubeconfigs,
		args:      l.apiServerArgs,
		ready: func(ctx context.Context) error {
			return httpProbe(l.apiServerURL()+"/readyz?verbose", l.keys.ClusterCA, l.keys.Admin)(ctx)
		},
		afterFirst: func(ctx context.Context) error {
			client, err := l.client()
			if err != nil {
				return err
			}
			return l.grant(ctx, client)
		},
	}, "kube-apiserver")
}

func (l *layout) controllerManager() *component {
	return l.local(&component{
		name:      ControllerManager,
		listeners: []string{portControllerManager},
		args:      l.controllerManagerArgs,
		ready:     l.healthProbe(portControllerManager, "/healthz"),
	}, "kube-controller-manager")
}

func (l *layout) scheduler() *component {
	return l.local(&component{
		name:      Scheduler,
		listeners: []string{portScheduler},
		prepare:   l.writeSchedulerConfig,
		args:      l.schedulerArgs,
		ready:     l.healthProbe(portScheduler, "/readyz"),
	}, "kube-scheduler")
}

// healthProbe asks a server whose health paths are open to anyone.
func (l *layout) healthProbe(port, path string) probe {
	return func(ctx context.Context) error {
		url := "https://" + l.ports.address(port) + path
		return httpProbe(url, l.keys.ClusterCA, pki.Pair{})(ctx)
	}
}

func (l *layout) node() *component {
	return l.local(&component{
		name:      Node,
		listeners: []string{portKubelet},
		args:      l.nodeArgs,
		ready: func(ctx context.Context) error {
			return nodeProbe(l.client, l.ports.address(portKubelet), l.opts.NodeName)(ctx)
		},
	}, "node")
}

func (l *layout) engine() *component {
	return l.named(&component{
		name:      Engine,
		path:      l.opts.EnginePath,
		listeners: []string{portEngineGRPC, portEngineHTTP},
		args:      l.engineArgs,
		ready: func(ctx context.Context) error {
			return httpProbe("http://"+l.ports.address(portEngineHTTP)+"/readyz", "", pki.Pair{})(ctx)
		},
	})
}

func (l *layout) executor() *component {
	return l.named(&component{
		name:      Executor,
		path:      l.opts.ExecutorPath,
		listeners: []string{portExecutorHTTP},
		args:      l.executorArgs,
		ready: func(ctx context.Context) error {
			return httpProbe("http://"+l.ports.address(portExecutorHTTP)+"/readyz", "", pki.Pair{})(ctx)
		},
	})
}

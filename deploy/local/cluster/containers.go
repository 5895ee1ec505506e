package cluster

import (
	"context"
	"net"
	"path/filepath"

	"jobpolicy.dev/deploy/local/internal/containernode"
	"jobpolicy.dev/deploy/local/internal/pki"
)

// nodeConfig is the configuration of the programs of a node with containers.
func (l *layout) nodeConfig() containernode.Config {
	return containernode.Config{
		Dir:                 l.dir.Path("node", "config"),
		DataDir:             l.dir.Path("node", "containerd"),
		BinDir:              l.opts.NodeBinDir,
		NodeName:            l.opts.NodeName,
		PodsCgroup:          l.inside.config.Cgroup.Pods(),
		ServingCert:         l.keys.KubeletServer,
		ClientCA:            l.keys.KubeletCA,
		KubeProxyKubeconfig: l.kubeconfig(KubeProxy),
		DNSKubeconfig:       l.kubeconfig(CoreDNS),
		CrashBackoff:        l.opts.CrashBackoff,
		Registry:            "http://" + l.ports.address(portRegistry),
		KubeProxyHealth:     l.ports.address(portKubeProxy),
		DNSReady:            l.ports.address(portCoreDNSReady),
	}
}

// apiServerArgsInside: pods reach the API server at the node's address, which
// nobody outside has. Containers may be privileged, as in any cluster that says
// nothing else.
func apiServerArgsInside() []string {
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + containernode.NodeAddress.String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + containernode.ServiceRange.String(),
		"--allow-privileged=true",
	}
}

// nodeProgram completes a component that is one of the programs of the node.
func (l *layout) nodeProgram(comp *component) *component {
	comp.path = filepath.Join(l.opts.NodeBinDir, comp.name)
	return l.named(comp)
}

func (l *layout) registry() *component {
	return l.local(&component{
		name:      Registry,
		listeners: []string{portRegistry},
		args:      func() []string { return []string{"--address=" + l.ports.address(portRegistry)} },
		prepare:   func() error { return l.nodeConfig().WriteRegistry() },
		ready:     l.serverProbe(portRegistry, "/v2/", "", pki.Pair{}),
	}, "image-registry")
}

func (l *layout) containerd() *component {
	return l.nodeProgram(&component{
		name:       Containerd,
		prepare:    func() error { return l.nodeConfig().WriteRuntime() },
		args:       func() []string { return l.nodeConfig().ContainerdArgs() },
		ready:      l.dialContainerd,
		afterFirst: l.loadFirstImages,
	})
}

func (l *layout) kubelet() *component {
	return l.nodeProgram(&component{
		name:      Kubelet,
		listeners: []string{portKubelet},
		args: func() []string {
			args := l.nodeConfig().KubeletArgs(l.kubeconfig(Node))
			return append(args, "--healthz-bind-address="+loopback, "--healthz-port="+l.ports.port(portKubelet))
		},
		ready: l.nodeProbe,
	})
}

func (l *layout) kubeProxy() *component {
	return l.nodeProgram(&component{
		name:      KubeProxy,
		listeners: []string{portKubeProxy},
		prepare:   func() error { return l.nodeConfig().WriteKubeProxy() },
		args:      func() []string { return l.nodeConfig().KubeProxyArgs() },
		ready:     l.serverProbe(portKubeProxy, "/healthz", "", pki.Pair{}),
	})
}

func (l *layout) coreDNS() *component {
	return l.nodeProgram(&component{
		name:      CoreDNS,
		listeners: []string{portCoreDNSReady},
		prepare:   func() error { return l.nodeConfig().WriteDNS() },
		args:      func() []string { return l.nodeConfig().CoreDNSArgs() },
		ready:     l.serverProbe(portCoreDNSReady, "/ready", "", pki.Pair{}),
		afterFirst: func(ctx context.Context) error {
			client, err := l.client()
			if err != nil {
				return err
			}
			return publishDNS(ctx, client)
		},
	})
}

func (l *layout) dialContainerd(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socketFrom(l.inside.first))
	if err != nil {
		return err
	}
	return conn.Close()
}

package cluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"jobpolicy.dev/deploy/local/internal/pki"
	"jobpolicy.dev/deploy/local/internal/statedir"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// Names of the listeners in the port set.
const (
	portEtcdClient        = "etcd-client"
	portEtcdPeer          = "etcd-peer"
	portAPIServer         = "kube-apiserver"
	portControllerManager = "kube-controller-manager"
	portScheduler         = "kube-scheduler"
	portKubelet           = "kubelet"
	portEngineGRPC        = "jobpolicy-engine-grpc"
	portEngineHTTP        = "jobpolicy-engine-http"
	portExecutorHTTP      = "jobpolicy-executor-http"
	portKubeProxy         = "kube-proxy"
	portRegistry          = "image-registry"
	portCoreDNSReady      = "coredns-ready"
)

// layout is where one control plane's files and listeners are.
type layout struct {
	opts  Options
	dir   *statedir.Dir
	keys  pki.Files
	ports *portSet
	// inside is where the components run; nil means on the machine itself.
	inside *enclosure
}

func newLayout(opts Options, dir *statedir.Dir) (*layout, error) {
	inside, err := newEnclosure(opts, dir)
	if err != nil {
		return nil, err
	}
	keys, err := pki.Ensure(dir.Path("pki"), pki.Node{Name: opts.NodeName, Addresses: inside.addresses()})
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	ports, err := loadPorts(dir.Path("ports.json"))
	if err != nil {
		return nil, err
	}
	return &layout{opts: opts, dir: dir, keys: keys, ports: ports, inside: inside}, nil
}

func (l *layout) logFile(component string) string { return l.dir.Path("logs", component+".log") }

func (l *layout) adminKubeconfig() string { return l.dir.Path("kubeconfig") }

func (l *layout) kubeconfig(component string) string {
	return l.dir.Path("kubeconfigs", component+".kubeconfig")
}

func (l *layout) schedulerConfig() string { return l.dir.Path("kube-scheduler.json") }

func (l *layout) apiServerURL() string { return "https://" + l.ports.address(portAPIServer) }

// writeKubeconfigs writes the files that lead the API server's clients to it.
// The port is part of them, so they are written right before it starts.
func (l *layout) writeKubeconfigs() error {
	clients := map[string]pki.Pair{
		l.adminKubeconfig():             l.keys.Admin,
		l.kubeconfig(ControllerManager): l.keys.ControllerManager,
		l.kubeconfig(Scheduler):         l.keys.Scheduler,
		l.kubeconfig(Node):              l.keys.Node,
		l.kubeconfig(KubeProxy):         l.keys.KubeProxy,
		l.kubeconfig(CoreDNS):           l.keys.DNS,
		l.kubeconfig(Executor):          l.keys.Executor,
	}
	for file, pair := range clients {
		if err := l.writeKubeconfig(file, pair); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	}
	return nil
}

// writeKubeconfig embeds the certificates: the file alone is enough, wherever
// it is copied.
func (l *layout) writeKubeconfig(file string, client pki.Pair) error {
	const name = "jobpolicy-local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:               l.apiServerURL(),
		CertificateAuthority: l.keys.ClusterCA,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate: client.Cert,
		ClientKey:         client.Key,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file)
}

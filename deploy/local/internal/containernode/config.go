package containernode

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// Addresses inside a cluster's network. They exist nowhere else.
var (
	// NodeAddress is the node's own.
	NodeAddress = netip.MustParseAddr("172.30.0.1")
	// PodRange are the addresses of pods.
	PodRange = netip.MustParsePrefix("10.244.0.0/16")
	// ServiceRange are the addresses of services.
	ServiceRange = netip.MustParsePrefix("10.96.0.0/16")
	// APIServerService is the address of the service "kubernetes": the first.
	APIServerService = netip.MustParseAddr("10.96.0.1")
	// DNSService is the address of the service that resolves names.
	DNSService = netip.MustParseAddr("10.96.0.10")
)

// Socket is where containerd listens, inside.
const Socket = "/run/containerd/containerd.sock"

// KubeletPort is the port of the kubelet's API at NodeAddress.
const KubeletPort = 10250

// ClusterDomain ends the names of services.
const ClusterDomain = "cluster.local"

// Config says where things are.
type Config struct {
	// Dir takes the configuration files.
	Dir string
	// DataDir takes containerd's images and containers.
	DataDir string
	// BinDir holds the programs.
	BinDir string
	// NodeName is the name of the Node object.
	NodeName string
	// PodsCgroup is the control group of all pods.
	PodsCgroup string
	// ServingCert and ClientCA are those of the kubelet's API.
	ServingCert pki.Pair
	ClientCA    string
	// KubeProxyKubeconfig and DNSKubeconfig lead to the API server.
	KubeProxyKubeconfig, DNSKubeconfig string
	// CrashBackoff, if not zero, is the longest delay before a container's restart.
	CrashBackoff time.Duration
	// Registry is the URL of the registry that stands for all.
	Registry string
	// KubeProxyHealth and DNSReady are where kube-proxy and CoreDNS tell that they
	// are ready.
	KubeProxyHealth, DNSReady string
}

// Paths of the configuration files.
func (c Config) containerd() string  { return filepath.Join(c.Dir, "containerd.toml") }
func (c Config) kubelet() string     { return filepath.Join(c.Dir, "kubelet.json") }
func (c Config) kubeProxy() string   { return filepath.Join(c.Dir, "kube-proxy.json") }
func (c Config) coreDNS() string     { return filepath.Join(c.Dir, "Corefile") }
func (c Config) cniDir() string      { return filepath.Join(c.Dir, "cni") }
func (c Config) registries() string  { return filepath.Join(c.Dir, "registries") }
func (c Config) podResolver() string { return filepath.Join(c.Dir, "resolv.conf") }

// cniConfig is the only configuration of a network.
func (c Config) cniConfig() string { return filepath.Join(c.cniDir(), "10-pods.conflist") }

// allRegistries is the configuration of a registry that has none of its own.
func (c Config) allRegistries() string {
	return filepath.Join(c.registries(), "_default", "hosts.toml")
}

// The components of a node start together, and the ports of each are chosen when it
// starts. So the files of each component are written separately, after its ports are
// chosen.

// WriteRuntime writes what containerd reads, and what kubelet will.
func (c Config) WriteRuntime() error {
	runtime, err := c.containerdConfig()
	if err != nil {
		return err
	}
	network, err := marshal(cniConfig())
	if err != nil {
		return err
	}
	kubelet, err := marshal(c.kubeletConfig())
	if err != nil {
		return err
	}
	return write(map[string][]byte{
		c.containerd(): runtime,
		c.cniConfig():  network,
		c.kubelet():    kubelet,
		// A pod that asks for the node's resolver gets an empty configuration: pods
		// cannot reach a resolver outside the cluster.
		c.podResolver(): nil,
	})
}

// WriteRegistry writes where containerd finds the registry.
func (c Config) WriteRegistry() error {
	hosts, err := c.registryHosts()
	if err != nil {
		return err
	}
	return write(map[string][]byte{c.allRegistries(): hosts})
}

// WriteKubeProxy writes what kube-proxy reads.
func (c Config) WriteKubeProxy() error {
	text, err := marshal(c.kubeProxyConfig())
	if err != nil {
		return err
	}
	return write(map[string][]byte{c.kubeProxy(): text})
}

// WriteDNS writes what CoreDNS reads.
func (c Config) WriteDNS() error {
	corefile, err := c.corefile()
	if err != nil {
		return err
	}
	return write(map[string][]byte{c.coreDNS(): corefile})
}

func marshal(o object) ([]byte, error) { return json.MarshalIndent(o, "", "  ") }

// write writes files, and makes their folders.
func write(texts map[string][]byte) error {
	for file, text := range texts {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// object is a piece of JSON.
type object = map[string]any

// cniConfig connects each pod with the node by a cable of its own, and the node
// routes between them. With a bridge instead, traffic from a pod by a service to
// another one would find a way around the address translation, unless the kernel
// passes bridged packets through the firewall, which not every machine does.
func cniConfig() object {
	return object{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []object{
			{
				"type": "ptp",
				"ipam": object{
					"type":   "host-local",
					"ranges": [][]object{{{"subnet": PodRange.String()}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{
				"type":         "portmap",
				"backend":      "nftables",
				"capabilities": object{"portMappings": true},
			},
		},
	}
}

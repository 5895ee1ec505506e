package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// Names of the users that the client certificates stand for. The system: names
// are those that the API server's bootstrap policy binds its roles to.
const (
	AdminUser             = "jobpolicy-local-admin"
	ControllerManagerUser = "system:kube-controller-manager"
	SchedulerUser         = "system:kube-scheduler"
	NodeUserPrefix        = "system:node:"
	NodeGroup             = "system:nodes"
	KubeProxyUser         = "system:kube-proxy"
	DNSUser               = "system:coredns"
	KubeletClientUser     = "kube-apiserver"
	ExecutorUser          = "jobpolicy-executor"

	adminGroup = "system:masters"
)

// Pair names the files of a certificate and its private key.
type Pair struct {
	Cert string
	Key  string
}

// Files names every file of a control plane's keys, by who presents it to whom.
type Files struct {
	// ClusterCA signs the API server and its clients.
	ClusterCA string
	// APIServer is the API server's serving certificate.
	APIServer Pair
	// Serving is the serving certificate of the scheduler and the controller
	// manager.
	Serving Pair
	// ClusterCAKey is ClusterCA's private key, with which the controller manager
	// signs what the cluster's certificate API is asked for.
	ClusterCAKey string
	// Admin, ControllerManager, Scheduler, Node, KubeProxy, DNS and Executor are
	// client certificates for the API server.
	Admin, ControllerManager, Scheduler, Node, KubeProxy, DNS, Executor Pair
	// ServiceAccountKey is the private key that signs service-account tokens.
	ServiceAccountKey string

	// EtcdCA signs etcd and its only client, the API server.
	EtcdCA     string
	EtcdServer Pair
	EtcdClient Pair

	// KubeletCA signs the node's HTTPS API and its only client, the API server.
	KubeletCA     string
	KubeletServer Pair
	KubeletClient Pair

	// EngineCA signs the policy engine and its callers.
	EngineCA     string
	EngineServer Pair
	EngineClient Pair
}

// Node is the node that the certificates are for.
type Node struct {
	// Name is that of the Node object.
	Name string
	// Addresses are those of the node and of the service "kubernetes", by which
	// pods reach the API server, where they differ from loopback.
	Addresses []string
}

// Ensure makes dir hold everything in Files: authorities and the
// service-account key are made only where missing, other certificates are
// issued anew. Files are readable by their owner only.
func Ensure(dir string, node Node) (Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, err
	}
	f := filesIn(dir)
	if err := ensureServiceAccountKey(f.ServiceAccountKey); err != nil {
		return Files{}, err
	}
	for _, group := range f.groups(node) {
		a, err := loadOrCreateAuthority(dir, group.authority)
		if err != nil {
			return Files{}, err
		}
		for _, cert := range group.certificates {
			if err := a.issue(cert.pair, cert.leaf); err != nil {
				return Files{}, err
			}
		}
	}
	return f, nil
}

const (
	clusterAuthority = "cluster-ca"
	etcdAuthority    = "etcd-ca"
	kubeletAuthority = "kubelet-ca"
	engineAuthority  = "engine-ca"
)

func filesIn(dir string) Files {
	pair := func(name string) Pair { return pairIn(dir, name) }
	return Files{
		ClusterCA:         pair(clusterAuthority).Cert,
		ClusterCAKey:      pair(clusterAuthority).Key,
		APIServer:         pair("kube-apiserver"),
		Serving:           pair("serving"),
		Admin:             pair("admin"),
		ControllerManager: pair("kube-controller-manager"),
		Scheduler:         pair("kube-scheduler"),
		Node:              pair("node"),
		KubeProxy:         pair("kube-proxy"),
		DNS:               pair("coredns"),
		Executor:          pair("executor"),
		ServiceAccountKey: filepath.Join(dir, "service-account.key"),
		EtcdCA:            pair(etcdAuthority).Cert,
		EtcdServer:        pair("etcd"),
		EtcdClient:        pair("kube-apiserver-etcd-client"),
		KubeletCA:         pair(kubeletAuthority).Cert,
		KubeletServer:     pair("kubelet"),
		KubeletClient:     pair("kube-apiserver-kubelet-client"),
		EngineCA:          pair(engineAuthority).Cert,
		EngineServer:      pair("engine"),
		EngineClient:      pair("engine-client"),
	}
}

func pairIn(dir, name string) Pair {
	return Pair{Cert: filepath.Join(dir, name+".crt"), Key: filepath.Join(dir, name+".key")}
}

type certificate struct {
	pair Pair
	leaf Leaf
}

type group struct {
	authority    string
	certificates []certificate
}

func (f Files) groups(node Node) []group {
	return []group{
		{authority: clusterAuthority, certificates: []certificate{
			{f.APIServer, serverLeaf("kube-apiserver", slices.Concat(apiServerHosts, node.Addresses)...)},
			{f.Serving, serverLeaf("control-plane")},
			{f.Admin, clientLeaf(AdminUser, adminGroup)},
			{f.ControllerManager, clientLeaf(ControllerManagerUser)},
			{f.Scheduler, clientLeaf(SchedulerUser)},
			{f.Node, clientLeaf(NodeUserPrefix+node.Name, NodeGroup)},
			{f.KubeProxy, clientLeaf(KubeProxyUser)},
			{f.DNS, clientLeaf(DNSUser)},
			{f.Executor, clientLeaf(ExecutorUser)},
		}},
		{authority: etcdAuthority, certificates: []certificate{
			{f.EtcdServer, bothWays(serverLeaf("etcd"))},
			{f.EtcdClient, clientLeaf("kube-apiserver")},
		}},
		{authority: kubeletAuthority, certificates: []certificate{
			{f.KubeletServer, serverLeaf("kubelet", append(node.Addresses, node.Name)...)},
			{f.KubeletClient, clientLeaf(KubeletClientUser)},
		}},
		{authority: engineAuthority, certificates: []certificate{
			{f.EngineServer, serverLeaf("jobpolicy-engine")},
			{f.EngineClient, clientLeaf(ExecutorUser)},
		}},
	}
}

// apiServerHosts are the names under which a pod asks for the API server, next
// to the loopback names that every server here has.
var apiServerHosts = []string{
	"kubernetes",
	"kubernetes.default",
	"kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local",
}

func serverLeaf(name string, hosts ...string) Leaf {
	return Leaf{
		CommonName: name,
		Hosts:      append([]string{"127.0.0.1", "::1", "localhost"}, hosts...),
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func clientLeaf(user string, groups ...string) Leaf {
	return Leaf{
		CommonName:    user,
		Organizations: groups,
		Usages:        []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// bothWays lets etcd use its serving certificate also as a client: its gRPC
// gateway dials the server's own port.
func bothWays(leaf Leaf) Leaf {
	leaf.Usages = append(leaf.Usages, x509.ExtKeyUsageClientAuth)
	return leaf
}

func ensureServiceAccountKey(path string) error {
	_, err := os.Stat(path)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("service-account key: %w", err)
	}
	key, err := pkiutil.GeneratePrivateKey(keys)
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

package cluster

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// replacedControllers are those that the executor and the policy engine replace.
var replacedControllers = []string{
	"job-controller",
	"cronjob-controller",
	"ttl-after-finished-controller",
}

// disabledControllers have nothing to do on one node without volumes, services or a cloud,
// and would only use memory and CPU. Enabled are garbage collection, namespaces, service
// accounts and their tokens, quotas, node life cycle and taints, pod garbage collection,
// disruption budgets, the controllers of the apps group, and those that remove finalizers.
var disabledControllers = []string{
	// No network for services.
	"endpoints-controller",
	"endpointslice-controller",
	"endpointslice-mirroring-controller",
	"service-cidr-controller",
	// No volumes beyond what the node itself makes.
	"persistentvolume-attach-detach-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-expander-controller",
	"ephemeral-volume-controller",
	"volumeattributesclass-protection-controller",
	// No devices.
	"device-taint-eviction-controller",
	"resourceclaim-controller",
	"resourcepoolstatusrequest-controller",
	// No certificates signed by the cluster.
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller",
	"podcertificaterequest-cleaner-controller",
	// No metrics API, one node, one API server of one version.
	"horizontal-pod-autoscaler-controller",
	"node-ipam-controller",
	"storage-version-migrator-controller",
	"storageversion-garbage-collector-controller",
	"ttl-controller",
	// They clean up objects that nothing creates here.
	"legacy-serviceaccount-token-cleaner-controller",
	"validatingadmissionpolicy-status-controller",
}

// DefaultControllers is the value of the controller manager's --controllers flag: all but
// those that this project replaces and those that have nothing to do here.
var DefaultControllers = without(slices.Concat(replacedControllers, disabledControllers))

// DefaultNodeControllers is the same for a cluster with a node that runs
// containers, and for other versions of Kubernetes, which may not know every name: all,
// without those that this project replaces.
var DefaultNodeControllers = without(replacedControllers)

func without(controllers []string) string { return "*,-" + strings.Join(controllers, ",-") }

func (o Options) defaultControllers() string {
	if o.Node == Containers || o.KubernetesDir != "" {
		return DefaultNodeControllers
	}
	return DefaultControllers
}

// etcdArgs: etcd is the cluster's root of trust, so it accepts only the API
// server's client certificate, on loopback too. Without fsync it is several
// times faster on a laptop's disk; see the package comment.
func (l *layout) etcdArgs() []string {
	client := "https://" + l.ports.address(portEtcdClient)
	peer := "https://" + l.ports.address(portEtcdPeer)
	return []string{
		"--name=local",
		"--data-dir=" + l.dir.Path("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		"--cert-file=" + l.keys.EtcdServer.Cert,
		"--key-file=" + l.keys.EtcdServer.Key,
		"--trusted-ca-file=" + l.keys.EtcdCA,
		"--client-cert-auth",
		"--peer-cert-file=" + l.keys.EtcdServer.Cert,
		"--peer-key-file=" + l.keys.EtcdServer.Key,
		"--peer-trusted-ca-file=" + l.keys.EtcdCA,
		"--peer-client-cert-auth",
	}
}

// apiServerArgs: with --shutdown-send-retry-after the API server gives watchers
// two seconds to leave when it stops, instead of a minute.
func (l *layout) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=https://" + l.ports.address(portEtcdClient),
		"--etcd-cafile=" + l.keys.EtcdCA,
		"--etcd-certfile=" + l.keys.EtcdClient.Cert,
		"--etcd-keyfile=" + l.keys.EtcdClient.Key,
		"--secure-port=" + l.ports.port(portAPIServer),
		"--client-ca-file=" + l.keys.ClusterCA,
		"--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.keys.ServiceAccountKey,
		"--service-account-signing-key-file=" + l.keys.ServiceAccountKey,
		"--kubelet-certificate-authority=" + l.keys.KubeletCA,
		"--kubelet-client-certificate=" + l.keys.KubeletClient.Cert,
		"--kubelet-client-key=" + l.keys.KubeletClient.Key,
		"--kubelet-preferred-address-types=InternalIP",
		"--shutdown-send-retry-after",
	}
	args = append(args, tlsArgs(l.keys.APIServer)...)
	if l.enclosed() {
		return append(args, apiServerArgsInside()...)
	}
	return append(args, apiServerArgsOutside()...)
}

// apiServerArgsOutside: a loopback address may not be published as the endpoint
// of the service "kubernetes", so no endpoint is (--endpoint-reconciler-type);
// the node tells its pods where the API server is.
func apiServerArgsOutside() []string {
	return []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
	}
}

// controllerManagerArgs: there is one instance, so leader election is off. After a
// restart it works at once and does not wait for its lease to expire. Each
// controller acts as its own service account, with its own role, as in any
// ordinary cluster. The request rate is above upstream's default (20 a second a
// controller), with which deleting a Job of a thousand pods takes a minute.
func (l *layout) controllerManagerArgs() []string {
	args := []string{
		"--kubeconfig=" + l.kubeconfig(ControllerManager),
		"--controllers=" + l.opts.ControllerManagerControllers,
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + l.keys.ServiceAccountKey,
		"--root-ca-file=" + l.keys.ClusterCA,
		"--kube-api-qps=100",
		"--kube-api-burst=200",
	}
	if l.enclosed() {
		args = append(args,
			"--cluster-signing-cert-file="+l.keys.ClusterCA,
			"--cluster-signing-key-file="+l.keys.ClusterCAKey)
	}
	return append(args, l.delegatedServingArgs(ControllerManager, portControllerManager, l.keys.Serving)...)
}

func (l *layout) schedulerArgs() []string {
	args := []string{"--config=" + l.schedulerConfig()}
	return append(args, l.delegatedServingArgs(Scheduler, portScheduler, l.keys.Serving)...)
}

// delegatedServingArgs let the admin's client certificate read a component's
// /metrics: it is authenticated by the cluster's authority, and authorized by
// asking the API server.
func (l *layout) delegatedServingArgs(component, port string, serving pki.Pair) []string {
	args := []string{
		"--bind-address=" + loopback,
		"--secure-port=" + l.ports.port(port),
		"--client-ca-file=" + l.keys.ClusterCA,
		"--authentication-kubeconfig=" + l.kubeconfig(component),
		"--authentication-skip-lookup",
		"--authorization-kubeconfig=" + l.kubeconfig(component),
	}
	return append(args, tlsArgs(serving)...)
}

func tlsArgs(pair pki.Pair) []string {
	return []string{"--tls-cert-file=" + pair.Cert, "--tls-private-key-file=" + pair.Key}
}

// writeSchedulerConfig: a config file is the only supported way to the
// scheduler's request rate, which bounds how many pods it binds in a second.
func (l *layout) writeSchedulerConfig() error {
	config := map[string]any{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false},
		"clientConnection": map[string]any{
			"kubeconfig": l.kubeconfig(Scheduler),
			"qps":        500,
			"burst":      1000,
		},
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(l.schedulerConfig(), text, 0o600)
}

func (l *layout) nodeArgs() []string {
	args := []string{
		"--kubeconfig=" + l.kubeconfig(Node),
		"--node-name=" + l.opts.NodeName,
		"--root-dir=" + l.dir.Path("node"),
		"--address=" + l.ports.address(portKubelet),
		"--client-ca-file=" + l.keys.KubeletCA,
	}
	if l.opts.CrashBackoff > 0 {
		args = append(args, "--crash-backoff-base="+l.opts.CrashBackoff.String())
	}
	return append(args, tlsArgs(l.keys.KubeletServer)...)
}

func (l *layout) engineArgs() []string {
	args := []string{
		"--grpc-address=" + l.ports.address(portEngineGRPC),
		"--http-address=" + l.ports.address(portEngineHTTP),
		"--client-ca-file=" + l.keys.EngineCA,
	}
	return append(args, tlsArgs(l.keys.EngineServer)...)
}

// executorArgs: leader election is off and the request rate is set for the same reasons as
// in the controller manager.
func (l *layout) executorArgs() []string {
	args := []string{
		"--kubeconfig=" + l.kubeconfig(Executor),
		"--replace-builtin",
		"--leader-elect=false",
		"--kube-api-qps=100",
		"--kube-api-burst=200",
		"--http-address=" + l.ports.address(portExecutorHTTP),
	}
	if l.opts.WithoutEngine {
		return append(args, "--engine=embedded")
	}
	return append(args,
		"--engine="+l.ports.address(portEngineGRPC),
		"--engine-ca-file="+l.keys.EngineCA,
		"--engine-cert-file="+l.keys.EngineClient.Cert,
		"--engine-key-file="+l.keys.EngineClient.Key,
		"--engine-server-name=localhost",
	)
}

package containernode

// KubeletArgs are the kubelet's arguments. Its root directory is the usual one,
// which inside is a part of the state directory.
func (c Config) KubeletArgs(kubeconfig string) []string {
	return []string{
		"--config=" + c.kubelet(),
		"--kubeconfig=" + kubeconfig,
		"--hostname-override=" + c.NodeName,
		"--node-ip=" + NodeAddress.String(),
	}
}

// kubeletConfig serves control groups of version 1 and 2 alike. Nothing is evicted and no image deleted because the machine's disk, which the
// node shares with everything else there, is full.
func (c Config) kubeletConfig() object {
	config := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",

		"address":           NodeAddress.String(),
		"port":              KubeletPort,
		"tlsCertFile":       c.ServingCert.Cert,
		"tlsPrivateKeyFile": c.ServingCert.Key,
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": c.ClientCA},
		},
		"authorization": object{"mode": "Webhook"},

		"containerRuntimeEndpoint": "unix://" + Socket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               c.PodsCgroup,
		"enforceNodeAllocatable":   []string{},
		"failCgroupV1":             false,
		"failSwapOn":               false,

		"clusterDNS":    []string{DNSService.String()},
		"clusterDomain": ClusterDomain,
		"resolvConf":    c.podResolver(),

		"maxPods":                     250,
		"imageGCHighThresholdPercent": 100,
		"evictionHard": object{
			"memory.available":  "0%",
			"nodefs.available":  "0%",
			"nodefs.inodesFree": "0%",
			"imagefs.available": "0%",
		},
	}
	if c.CrashBackoff > 0 {
		config["crashLoopBackOff"] = object{"maxContainerRestartPeriod": c.CrashBackoff.String()}
	}
	return config
}

// KubeProxyArgs are kube-proxy's arguments.
func (c Config) KubeProxyArgs() []string { return []string{"--config=" + c.kubeProxy()} }

// kubeProxyConfig leaves connection tracking alone: its limits are those of the
// whole machine.
func (c Config) kubeProxyConfig() object {
	return object{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"clientConnection":   object{"kubeconfig": c.KubeProxyKubeconfig},
		"hostnameOverride":   c.NodeName,
		"mode":               "nftables",
		"clusterCIDR":        PodRange.String(),
		"nodePortAddresses":  []string{NodeAddress.String() + "/32"},
		"healthzBindAddress": c.KubeProxyHealth,
		"metricsBindAddress": "127.0.0.1:10249",
		"conntrack": object{
			"maxPerCore":            0,
			"min":                   0,
			"tcpEstablishedTimeout": "0s",
			"tcpCloseWaitTimeout":   "0s",
		},
	}
}

package containernode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	c := Config{
		Dir: dir, DataDir: "/data", BinDir: "/bin dir", NodeName: "n1", PodsCgroup: "/ours/pods",
		Registry: "http://127.0.0.1:7", DNSReady: "127.0.0.1:8", DNSKubeconfig: "/k/dns", CrashBackoff: time.Second,
	}
	for _, write := range []func() error{c.WriteRuntime, c.WriteRegistry, c.WriteKubeProxy, c.WriteDNS} {
		must.Succeed(t, write())
	}
	has := map[string][]string{
		"containerd.toml":                {`root = "/data"`, `BinaryName = "/bin dir/runc"`, `bin_dirs = ["/bin dir/cni"]`, "restrict_oom_score_adj = true"},
		"registries/_default/hosts.toml": {`server = "http://127.0.0.1:7"`, `[host."http://127.0.0.1:7"]`},
		"Corefile":                       {"bind 172.30.0.1", "ready 127.0.0.1:8", "kubeconfig /k/dns"},
		"resolv.conf":                    nil,
	}
	for name, parts := range has {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must.Succeed(t, err)
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s does not say %s:\n%s", name, part, text)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "kubelet.json"))
	must.Succeed(t, err)
	var kubelet map[string]any
	must.Succeed(t, json.Unmarshal(text, &kubelet))
	want := map[string]any{"maxContainerRestartPeriod": "1s"}
	must.Equal(t, "crashLoopBackOff", want, kubelet["crashLoopBackOff"])
	if kubelet["cgroupRoot"] != "/ours/pods" {
		t.Errorf("cgroupRoot is %v: pods would leave the cluster's control group", kubelet["cgroupRoot"])
	}
}

// A component that starts beside kube-proxy does not know kube-proxy's port.
func TestNobodyWritesAnothersFiles(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	knows := c
	knows.KubeProxyHealth = "127.0.0.1:9"
	must.Succeed(t, knows.WriteKubeProxy())
	for _, write := range []func() error{c.WriteRuntime, c.WriteRegistry, c.WriteDNS} {
		must.Succeed(t, write())
	}
	text, err := os.ReadFile(filepath.Join(c.Dir, "kube-proxy.json"))
	must.Succeed(t, err)
	if !strings.Contains(string(text), knows.KubeProxyHealth) {
		t.Errorf("kube-proxy.json does not say %s any more:\n%s", knows.KubeProxyHealth, text)
	}
}

func TestAddressesDoNotOverlap(t *testing.T) {
	if PodRange.Overlaps(ServiceRange) || PodRange.Contains(NodeAddress) || ServiceRange.Contains(NodeAddress) {
		t.Error("the addresses of pods, services and the node overlap")
	}
	if !ServiceRange.Contains(DNSService) || ServiceRange.Addr().Next() != APIServerService {
		t.Error("a service's address is not in their range, or the first is not the API server's")
	}
	if !slices.Contains(Config{NodeName: "n"}.KubeletArgs("k"), "--node-ip="+NodeAddress.String()) {
		t.Error("the kubelet does not know its address")
	}
}

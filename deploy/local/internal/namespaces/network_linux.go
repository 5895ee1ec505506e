package namespaces

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// networkSettings let the machine route between pods.
var networkSettings = map[string]string{
	"/proc/sys/net/ipv4/ip_forward": "1",
}

// configureNetwork gives the inside its one address. It has no way out: what is
// not a pod, a service or the node is unreachable, which programs learn at once.
func (c Config) configureNetwork() error {
	node := c.NodeAddress.String()
	commands := []string{
		"link set lo up",
		"addr add " + node + "/32 dev lo",
		// kube-proxy rewrites service addresses after the kernel has found a route.
		"route add " + c.ServiceRange.String() + " dev lo src " + node,
		"route add unreachable default",
	}
	for _, command := range commands {
		output, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(output)))
		}
	}
	for setting, value := range networkSettings {
		if err := os.WriteFile(setting, []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"jobpolicy.dev/deploy/local/internal/namespaces"
)

// nodePrograms are the files of Options.NodeBinDir that a node with containers
// needs.
var nodePrograms = []string{
	"containerd", "containerd-shim-runc-v2", "ctr", "runc", "kubelet", "kube-proxy", "coredns",
	"cni/ptp", "cni/host-local", "cni/loopback", "cni/portmap", "images/pause.tar",
}

// checkNode reports everything that a node with containers lacks here.
func (o Options) checkNode() error {
	errs := []error{namespaces.Missing()}
	for _, name := range nodePrograms {
		if _, err := os.Stat(filepath.Join(o.NodeBinDir, name)); err != nil {
			errs = append(errs, fmt.Errorf("a program (make build-node builds it): %w", err))
		}
	}
	for _, image := range o.Images {
		if _, err := os.Stat(image); err != nil {
			errs = append(errs, fmt.Errorf("an image: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("this machine cannot run a node with containers; missing:\n%w", err)
	}
	return nil
}

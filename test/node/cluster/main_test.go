// Package cluster runs Jobs in real containers: a whole cluster with containerd,
// kubelet and kube-proxy in namespaces of its own, on this machine.
package cluster

import (
	"os"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/node/cluster/shared"
)

func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, cluster.Options{
		ExtraArgs: map[string][]string{cluster.Executor: {"--pod-failure-backoff=1s"}},
	}))
}

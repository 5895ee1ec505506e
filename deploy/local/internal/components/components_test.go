package components_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/internal/components"
)

func TestKnown(t *testing.T) {
	cases := map[string]bool{
		cluster.Etcd:              true,
		cluster.APIServer:         true,
		cluster.ControllerManager: true,
		cluster.Scheduler:         true,
		cluster.Node:              false,
		"":                        false,
	}
	for name, want := range cases {
		if got := components.Known(name); got != want {
			t.Errorf("Known(%q) is %t, want %t", name, got, want)
		}
	}
}

// The controller manager ignores names that it does not know. A misspelt name would leave
// the built-in controller running beside ours.
func TestDefaultControllersAreUpstreamsNames(t *testing.T) {
	known := app.KnownControllers()
	var disabled []string
	for name := range strings.SplitSeq(cluster.DefaultControllers, ",") {
		if name == "*" {
			continue
		}
		name, found := strings.CutPrefix(name, "-")
		if !found {
			t.Errorf("%s is neither * nor switched off", name)
		}
		if !slices.Contains(known, name) {
			t.Errorf("upstream has no controller %s", name)
		}
		disabled = append(disabled, name)
	}
	for _, replaced := range []string{"job-controller", "cronjob-controller", "ttl-after-finished-controller"} {
		if !slices.Contains(disabled, replaced) {
			t.Errorf("%s still runs", replaced)
		}
	}
	for _, needed := range []string{
		"garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
		"serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"pod-garbage-collector-controller", "node-lifecycle-controller", "taint-eviction-controller",
		"resourcequota-controller", "clusterrole-aggregation-controller",
	} {
		if !slices.Contains(known, needed) || slices.Contains(disabled, needed) {
			t.Errorf("%s does not run", needed)
		}
	}
}

package clients

import (
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
)

// A side is who runs Jobs, CronJobs and times to live.
type side string

const (
	builtin side = "builtin"
	ours    side = "ours"
)

var sides = []side{builtin, ours}

// withBuiltIn are all controllers that the local control plane needs, and the built-in ones.
var withBuiltIn = strings.NewReplacer(
	",-job-controller", "", ",-cronjob-controller", "", ",-ttl-after-finished-controller", "",
).Replace(cluster.DefaultControllers)

// without switches the built-in controllers off. The values of a flag --controllers that is given twice are joined.
const without = "--controllers=-job-controller,-cronjob-controller,-ttl-after-finished-controller"

// startPlane starts a control plane on which the executor is known and off, and the built-in controllers are on.
func startPlane(t *testing.T) *cluster.Cluster {
	t.Helper()
	return startPlaneWith(t, cluster.Options{ControllerManagerControllers: withBuiltIn})
}

// startPlaneWith is startPlane with options, which have the built-in controllers on.
func startPlaneWith(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	plane := controlplane.Start(t, options)
	must.Succeed(t, plane.Kill(cluster.Executor))
	return plane
}

// takeOver gives a control plane, which startPlane has started, to a side. The controller manager starts anew for
// either: its garbage collector then knows the kinds of a client at once.
func (s side) takeOver(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	if _, err := plane.StopComponent(t.Context(), cluster.ControllerManager); err != nil {
		t.Fatal(err)
	}
	start, args := []string{cluster.ControllerManager}, []string(nil)
	if s == ours {
		start, args = append(start, cluster.Executor), []string{without}
	}
	must.Succeed(t, plane.SetExtraArgs(cluster.ControllerManager, args...))
	for _, component := range start {
		must.Succeed(t, plane.StartComponent(t.Context(), component))
	}
}

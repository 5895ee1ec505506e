package specs

import (
	"fmt"
	"path/filepath"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/cluster/shared"
)

// What may run the Jobs: this project's controllers in place of the built-in ones, as pods or as processes beside the
// cluster, or the built-in ones, with which the specs themselves and the node are tried.
const (
	inPods      = "pods"
	asProcesses = "processes"
	builtIn     = "built-in"
)

// options are those of a cluster in which the given controllers run the Jobs. It has the default settings, so that
// failed pods are retried as late as in any cluster.
func options(controllers string) (cluster.Options, error) {
	switch controllers {
	case asProcesses:
		return cluster.Options{}, nil
	case builtIn:
		return cluster.Options{WithoutEngine: true, WithoutExecutor: true, ControllerManagerControllers: "*"}, nil
	case inPods:
		return cluster.Options{WithoutEngine: true, WithoutExecutor: true}, nil
	}
	return cluster.Options{}, fmt.Errorf("-specs.by=%s: want %s, %s or %s", controllers, inPods, asProcesses, builtIn)
}

// install installs both services as an administrator does, in replace mode, and waits until they are ready. Their
// images are those of make images.
func install(t *testing.T) {
	t.Helper()
	dir := executables.MustDir(t)
	for _, service := range []string{"jobpolicy-engine", "jobpolicy-executor"} {
		shared.Load(t, filepath.Join(dir, "images", service+".tar"))
	}
	const namespace = "jobpolicy-system"
	for _, args := range [][]string{
		{"apply", "-k", "../../../../deploy/kubernetes/replace"},
		{"-n", namespace, "rollout", "status", "deployment/jobpolicy-engine", "--timeout", shared.Patience.String()},
		{"-n", namespace, "rollout", "status", "deployment/jobpolicy-executor", "--timeout", shared.Patience.String()},
	} {
		if output, err := kubectl(t.Context(), dir, args...); err != nil {
			t.Fatalf("kubectl %q: %v: %s", args, err, output)
		}
	}
}

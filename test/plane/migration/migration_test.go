package migration

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/freeport"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/kit/objects"
)

var switchesFlag = flag.Int("migration.switches", 4, "how often Jobs change their controller")

// Jobs in flight are compared in shadow mode first, which finds no difference that lasts,
// and then go from the built-in controllers to ours and back.
func TestMigration(t *testing.T) {
	t.Parallel()
	plane := startPlane(t)
	client := kubernetes.NewForConfigOrDie(plane.RESTConfig())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "migration"}}
	objects.Create(t, client.CoreV1().Namespaces(), namespace)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*switchesFlag)*time.Minute+3*time.Minute)
	defer cancel()
	jobs, err := Migration{
		Client: client, Namespace: namespace.Name, Image: "none", Every: time.Second,
		From: builtIn(plane), To: ours(plane), Switches: *switchesFlag, Tell: t.Logf,
		Watch: func(ctx context.Context) error { return compare(ctx, t, plane) },
	}.Play(ctx)
	if err != nil {
		t.Errorf("of %d Jobs:\n%v", jobs, err)
	}
	if least := *switchesFlag * 2; jobs < least {
		t.Errorf("there were %d Jobs, want at least %d", jobs, least)
	}
}

// startPlane starts a control plane in which the built-in controllers run Jobs,
// and the executor is known and off.
func startPlane(t *testing.T) *cluster.Cluster {
	t.Helper()
	plane := controlplane.Start(t, cluster.Options{
		ControllerManagerControllers: withBuiltIn,
		ExtraArgs:                    map[string][]string{cluster.Executor: {"--replace-builtin"}},
		Progress:                     func(p cluster.Progress) { fmt.Fprintln(os.Stderr, p) },
	})
	must.Succeed(t, plane.Kill(cluster.Executor))
	return plane
}

// ours is the executor.
func ours(plane *cluster.Cluster) Side {
	return Side{
		Name:  cluster.Executor,
		Start: func(ctx context.Context) error { return plane.StartComponent(ctx, cluster.Executor) },
		Stop: func(ctx context.Context) error {
			_, err := plane.StopComponent(ctx, cluster.Executor)
			return err
		},
		Kill: func(context.Context) error { return plane.Kill(cluster.Executor) },
	}
}

// compare runs an executor in shadow mode beside the built-in controllers until it has
// compared some Jobs and sees no difference. A difference may begin and end while the
// built-in controllers are late.
func compare(ctx context.Context, t *testing.T, plane *cluster.Cluster) error {
	binaries, err := executables.Dir()
	if err != nil {
		return err
	}
	address, err := freeport.Address()
	if err != nil {
		return err
	}
	shadow := exec.CommandContext(ctx, filepath.Join(binaries, "jobpolicy-executor"), "--mode=shadow", "--shadow-rest=1s", "--engine=embedded",
		"--kubeconfig="+plane.Kubeconfig(), "--http-address="+address)
	shadow.Stderr = os.Stderr
	if err := shadow.Start(); err != nil {
		return err
	}
	defer func() { _ = shadow.Wait() }()
	defer func() { _ = shadow.Process.Signal(syscall.SIGTERM) }()
	for {
		if err := sleep(ctx, time.Second/4); err != nil {
			return fmt.Errorf("the shadow has not compared enough, or sees a difference that lasts: %w", err)
		}
		metrics := get("http://" + address + "/metrics")
		same, open := sum(metrics, `jobpolicy_shadow_comparisons_total{object="job",result="same"`), sum(metrics, "jobpolicy_shadow_open_differences")
		if same >= leastCompared && open == 0 {
			t.Logf("in shadow mode: %v comparisons of Jobs found no difference, %v differences began and ended", same, sum(metrics, "jobpolicy_shadow_differences_total"))
			return nil
		}
	}
}

// leastCompared is how many comparisons the shadow makes at least.
const leastCompared = 5

// get returns what is served, or nothing.
func get(url string) string {
	response, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

// sum adds the samples whose lines begin with prefix.
func sum(metrics, prefix string) float64 {
	total := 0.0
	for line := range strings.Lines(metrics) {
		if fields := strings.Fields(line); strings.HasPrefix(line, prefix) {
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err == nil {
				total += value
			}
		}
	}
	return total
}

// builtIn is kube-controller-manager with its own Job, CronJob and TTL
// controllers. Without them it still runs: the cluster needs the others.
func builtIn(plane *cluster.Cluster) Side {
	start := func(ctx context.Context, extra ...string) error {
		if err := plane.SetExtraArgs(cluster.ControllerManager, extra...); err != nil {
			return err
		}
		return plane.StartComponent(ctx, cluster.ControllerManager)
	}
	return Side{
		Name: "the built-in controller",
		Start: func(ctx context.Context) error {
			if err := plane.Kill(cluster.ControllerManager); err != nil {
				return err
			}
			return start(ctx)
		},
		Stop: func(ctx context.Context) error {
			if _, err := plane.StopComponent(ctx, cluster.ControllerManager); err != nil {
				return err
			}
			return start(ctx, without)
		},
		Kill: func(ctx context.Context) error {
			if err := plane.Kill(cluster.ControllerManager); err != nil {
				return err
			}
			return start(ctx, without)
		},
	}
}

// without is the flag that switches the built-in controllers off. The values of
// a --controllers flag that is given twice are joined.
const without = "--controllers=-job-controller,-cronjob-controller,-ttl-after-finished-controller"

// withBuiltIn are all controllers that the local control plane needs, and the
// built-in ones.
var withBuiltIn = strings.NewReplacer(
	",-job-controller", "", ",-cronjob-controller", "", ",-ttl-after-finished-controller", "",
).Replace(cluster.DefaultControllers)
